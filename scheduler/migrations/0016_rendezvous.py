from django.db import migrations, models


def to_the_column(apps, schema_editor):
    """Where nodes meet stood beside what was measured."""
    attempts = apps.get_model("scheduler", "Attempt").objects
    for attempt in attempts.filter(measured__has_key="rendezvous").only("measured"):
        attempt.rendezvous = attempt.measured.pop("rendezvous")
        attempt.save(update_fields=["measured", "rendezvous"])


def beside_the_figures(apps, schema_editor):
    attempts = apps.get_model("scheduler", "Attempt").objects
    for attempt in attempts.exclude(rendezvous="").only("measured", "rendezvous"):
        attempt.measured["rendezvous"] = attempt.rendezvous
        attempt.save(update_fields=["measured"])


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0015_deleted_files'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='rendezvous',
            field=models.CharField(blank=True, db_default='', default='', max_length=260),
        ),
        migrations.RunPython(to_the_column, beside_the_figures),
    ]
