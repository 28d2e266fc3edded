from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0051_dependencies_on_arrays'),
    ]

    operations = [
        migrations.AddField(
            model_name='calibration',
            name='state',
            field=models.CharField(choices=[('running', 'Running'), ('stopping', 'Stopping'), ('done', 'Done'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], db_default='running', default='running', max_length=10),
        ),
    ]
