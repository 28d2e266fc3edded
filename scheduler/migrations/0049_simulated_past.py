from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0048_held_models'),
    ]

    operations = [
        migrations.AddField(
            model_name='simulation',
            name='as_it_was',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='simulation',
            name='reproduction',
            field=models.JSONField(null=True),
        ),
    ]
