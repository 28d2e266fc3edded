from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0018_node_prices'),
    ]

    operations = [
        migrations.AddField(
            model_name='metric',
            name='others',
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
