from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0046_forecast_gpus'),
    ]

    operations = [
        migrations.AddField(
            model_name='changesearch',
            name='trouble',
            field=models.CharField(blank=True, db_default='', default='', max_length=500),
        ),
    ]
