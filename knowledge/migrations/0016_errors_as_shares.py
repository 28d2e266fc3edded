from math import expm1, log1p

from django.db import migrations


def to_shares(apps, schema_editor):
    """Errors were logarithms of ratios: the share of the smaller figure is the nearest that is known."""
    _convert(apps, expm1)


def to_logarithms(apps, schema_editor):
    _convert(apps, log1p)


def _convert(apps, function):
    records = apps.get_model("knowledge", "TrackRecord").objects
    for record in records.filter(median_error__isnull=False).iterator():
        records.filter(pk=record.pk).update(median_error=function(record.median_error))


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0015_log_format")]

    operations = [migrations.RunPython(to_shares, to_logarithms)]
