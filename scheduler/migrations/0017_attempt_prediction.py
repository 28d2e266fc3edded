"""`Attempt.forecast` is called `prediction`; its column stays, so that old and new code run side by side."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0016_rendezvous")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("attempt", "forecast", "prediction"),
                migrations.AlterField(
                    "attempt",
                    "prediction",
                    models.JSONField(blank=True, db_column="forecast", null=True),
                ),
            ]
        )
    ]
