from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0042_fair_shares'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='front_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
