from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0040_market_plans'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='stops_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='failure_code',
            field=models.CharField(blank=True, db_default='', default='', max_length=20),
        ),
        migrations.AddField(
            model_name='job',
            name='max_run_s',
            field=models.IntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='personlimit',
            name='max_run_s',
            field=models.IntegerField(blank=True, null=True),
        ),
    ]
