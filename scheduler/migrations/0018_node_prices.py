import django.db.models.deletion
from django.db import migrations, models


def from_the_beginning(apps, schema_editor):
    """Nobody kept earlier prices: today's one counts since the node joined, marked as estimated."""
    nodes = apps.get_model("scheduler", "Node").objects.filter(price_per_gpu_hour__gt=0)
    prices = apps.get_model("scheduler", "NodePrice").objects
    prices.bulk_create(
        prices.model(
            node=node, since=node.enrolled_at, price_per_gpu_hour=node.price_per_gpu_hour, estimated=True
        )
        for node in nodes
    )


class Migration(migrations.Migration):

    dependencies = [("scheduler", "0017_attempt_prediction")]

    operations = [
        migrations.CreateModel(
            name="NodePrice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.DateTimeField()),
                ("price_per_gpu_hour", models.FloatField()),
                ("estimated", models.BooleanField(db_default=False, default=False)),
                ("node", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="prices", to="scheduler.node")),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("price_per_gpu_hour__gte", 0)), name="price_not_below_0")
                ],
            },
        ),
        migrations.RunPython(from_the_beginning, migrations.RunPython.noop),
    ]
