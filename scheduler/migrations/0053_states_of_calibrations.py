"""The state of a calibration that began before it was a column."""

from django.db import migrations, models
from django.db.models import F, Q


def fill(apps, _schema_editor):
    calibrations = apps.get_model('scheduler', 'Calibration').objects.exclude(outcome='')
    calibrations.filter(ended_at__isnull=True).update(state='stopping')
    calibrations.filter(ended_at__isnull=False).update(state=F('outcome'))


class Migration(migrations.Migration):

    dependencies = [
        ('scheduler', '0052_calibration_state'),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='calibration',
            constraint=models.CheckConstraint(
                condition=Q(state='running', outcome='', ended_at__isnull=True)
                | Q(state='stopping', outcome__gt='', ended_at__isnull=True)
                | Q(state=F('outcome'), outcome__gt='', ended_at__isnull=False),
                name='a_calibration_ends_in_its_outcome',
            ),
        ),
    ]
