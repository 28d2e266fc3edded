"""What takes room at the portal: by kind, by person and by job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Q, QuerySet, Sum

from scheduler.models import Artifact, DatasetFile

FILES, OUTPUTS, CHECKPOINTS = "training files", "outputs", "checkpoints"
LISTED = 20


@dataclass(frozen=True, slots=True)
class Taker:
    """A person or a job, and the bytes that its files take. key: of the row."""

    key: str
    name: str
    files_bytes: int
    outputs_bytes: int
    checkpoints_bytes: int

    @property
    def bytes(self) -> int:
        return self.files_bytes + self.outputs_bytes + self.checkpoints_bytes


def stored_bytes() -> dict[str, int]:
    """The bytes of each kind; equal training files lie there once."""
    parts = Artifact.objects.aggregate(
        outputs=Sum("bytes", filter=Q(checkpoint_step__isnull=True)),
        checkpoints=Sum("bytes", filter=Q(checkpoint_step__isnull=False)),
    )
    contents = DatasetFile.present.order_by().values("sha256").annotate(size=Max("bytes"))
    return {
        FILES: contents.aggregate(total=Sum("size"))["total"] or 0,
        OUTPUTS: parts["outputs"] or 0,
        CHECKPOINTS: parts["checkpoints"] or 0,
    }


def people_by_room() -> list[Taker]:
    """Those whose files and jobs take the most, most first."""
    contents = DatasetFile.present.order_by().values("owner", "owner__username", "sha256")
    files: dict[tuple[str, str], int] = {}
    for owner, name, _, size in contents.annotate(size=Max("bytes")).values_list(
        "owner", "owner__username", "sha256", "size"
    ):
        files[str(owner), name] = files.get((str(owner), name), 0) + size
    of_jobs = {
        (str(owner), name): (outputs or 0, checkpoints or 0)
        for owner, name, outputs, checkpoints, _ in _summed("job__owner", "job__owner__username")
    }
    people = [
        Taker(*person, files.get(person, 0), *of_jobs.get(person, (0, 0))) for person in {*files, *of_jobs}
    ]
    return sorted(people, key=lambda taker: (-taker.bytes, taker.name))[:LISTED]


def jobs_by_room() -> list[Taker]:
    """The jobs whose outputs and checkpoints take the most, most first."""
    return [
        Taker(job, name or job, 0, outputs or 0, checkpoints or 0)
        for job, name, outputs, checkpoints, _ in _summed("job", "job__name")[:LISTED]
    ]


def _summed(*columns: str) -> QuerySet[Artifact, Any]:
    """Rows of the columns; the bytes of outputs, checkpoints and both, most first."""
    return (
        Artifact.objects.values_list(*columns)
        .annotate(
            outputs=Sum("bytes", filter=Q(checkpoint_step__isnull=True)),
            checkpoints=Sum("bytes", filter=Q(checkpoint_step__isnull=False)),
            total=Sum("bytes"),
        )
        .order_by("-total", *columns)
    )
