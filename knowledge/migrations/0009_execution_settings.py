from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('knowledge', '0008_chunked_loss'),
    ]

    operations = [
        migrations.AddField(
            model_name='execution',
            name='settings',
            field=models.JSONField(db_default={}, default=dict, help_text='fields of Config without a column'),
        ),
    ]
