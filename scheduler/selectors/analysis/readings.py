"""Values that were read for jobs, and people's choices about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from portal.accounts.models import User
from scheduler.models import Job, JobReading, ReadSource, ReadValueCount

FILES = ("training_file", "validation_file")


def own_reading(user: User, job: Job) -> JobReading | None:
    """The values read for a job; None without any, or for others than its owner."""
    return JobReading.objects.filter(job=job).first() if job.owner_id == user.pk else None


def read_value_counts() -> Sequence[ReadValueCount]:
    """The fate of all values that were read, by source and field."""
    return list(ReadValueCount.objects.all())


def shared_sentences() -> Iterator[dict[str, Any]]:
    """Sentences of people who agreed, oldest first, as a labelled set has them.

    fields: what was read and submitted; files are named, people and jobs are not.
    """
    rows = JobReading.objects.exclude(said="").filter(job__owner__shares_sentences=True)
    related = ("job__owner", "job__training_file", "job__validation_file")
    for row in rows.select_related(*related).order_by("pk").iterator():
        yield _example(row)


def _example(row: JobReading) -> dict[str, Any]:
    job = row.job
    named = {name: file.filename for name in FILES if (file := getattr(job, name))}
    said = {name: one for name, one in row.fields.items() if one["source"] == ReadSource.SENTENCE}
    return {
        "text": row.said,
        "now": job.submitted_at.isoformat(),
        "timezone": job.owner.time_zone,
        "files": sorted(set(named.values())),
        "fields": {
            name: {
                "value": named.get(name, "") if name in FILES else one["value"],
                "origin": one["origin"],
                "fate": one["fate"],
            }
            for name, one in said.items()
        },
    }
