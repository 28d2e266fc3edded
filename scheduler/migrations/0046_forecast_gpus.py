from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0045_start_questions'),
    ]

    operations = [
        migrations.AddField(
            model_name='startforecast',
            name='gpus',
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
