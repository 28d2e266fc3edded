"""Values that were read for a job are kept with it, and their fate is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F

from scheduler.core.job_terms import ON_THE_ROW
from scheduler.models import Job, JobReading, ReadValueCount
from scheduler.services.provenance.read_values import VERSION, ReadValueChoice, ReadValues


def keep_reading(job: Job, read: Sequence[ReadValues]) -> None:
    """Keep what was read with a job that was just stored.

    A sentence of which everything was cleared is not kept.
    """
    submitted = submitted_values(job)
    rows: dict[str, dict[str, Any]] = {}
    said = ""
    for one in read:
        fates = one.fates(submitted)
        taken = {
            name: one.values[name] for name, fate in fates.items() if fate is not ReadValueChoice.CLEARED
        }
        said = one.said if taken and one.said else said
        rows |= {
            name: {
                "source": one.source.value,
                "origin": value.origin,
                "because": value.because,
                "value": value.value,
                "fate": fates[name].value,
            }
            for name, value in taken.items()
        }
    if rows:
        JobReading.objects.create(job=job, said=said, values={"version": VERSION, "fields": rows})


@transaction.atomic
def count_fates(job: Job, read: Sequence[ReadValues]) -> None:
    """Count what became of each value; no text is kept for it."""
    submitted = submitted_values(job)
    for one in read:
        fates = one.fates(submitted)
        if not fates:
            continue
        rows = [ReadValueCount(source=one.source, field=name) for name in sorted(fates)]
        ReadValueCount.objects.bulk_create(rows, ignore_conflicts=True)
        counts = ReadValueCount.objects.filter(source=one.source, field__in=fates)
        # Locked in one order, so that no two submissions wait for each other.
        by_field = {row.field: row for row in counts.select_for_update().order_by("pk")}
        for fate in ReadValueChoice:
            keys = [by_field[name].pk for name, found in fates.items() if found is fate]
            if keys:
                counts.filter(pk__in=keys).update(**{fate.value: F(fate.value) + 1})


def submitted_values(job: Job) -> Mapping[str, Any]:
    """The person's own values of a job, by the names of a submission."""
    return {**{name: term.of(job) for name, term in ON_THE_ROW.items()}, **job.fixed}
