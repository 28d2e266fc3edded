"""Models that jobs left, and the figures of their steps as files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from portal.accounts.models import User
from scheduler.models import Artifact, Job, Metric
from scheduler.selectors.jobs import visible_jobs
from scheduler.states import JobState
from trainer.protocol import Outcome

STEPS = "output/metrics.csv"


def visible_results(user: User) -> QuerySet[Artifact]:
    """The figures of jobs that succeeded and whose files are here, one of each.

    Where they are, its model is. They come with their jobs, owners and teams.
    """
    here = Artifact.objects.filter(
        path=STEPS, claim__rank=0, claim__attempt__outcome=Outcome.SUCCEEDED, job__state=JobState.SUCCEEDED
    )
    seen = here if user.is_admin else here.filter(job__in=visible_jobs(user))
    return seen.select_related("job", "job__owner", "job__team")


def jobs_with_results(jobs: Collection[Job]) -> set[str]:
    """Ids of those of the jobs that have results here; one query."""
    ended = [job.pk for job in jobs if job.state == JobState.SUCCEEDED]
    rows = Artifact.objects.filter(job__in=ended, path=STEPS, claim__attempt__outcome=Outcome.SUCCEEDED)
    return set(rows.values_list("job_id", flat=True)) if ended else set()


@dataclass(frozen=True, slots=True)
class StepsFile:
    """The figures of a job's steps, in columns of other names than at the node.

    path: the node's file; columns: the names by its own.
    """

    path: Path
    columns: dict[str, str]

    @classmethod
    def of(cls, result: Artifact, columns: dict[str, str]) -> StepsFile:
        folder = Path(settings.DATA_DIR) / "artifacts" / result.job_id / str(result.claim_id)
        return cls(folder / result.path, columns)

    def _header(self) -> tuple[bytes, bytes]:
        """The file's first line, and with the other names. Raises OSError."""
        with self.path.open("rb") as lines:
            own = lines.readline()
        names = own.decode().rstrip("\n").split(",")
        return own, (",".join(self.columns.get(name, name) for name in names) + "\n").encode()

    @property
    def size(self) -> int:
        """Raises OSError."""
        own, renamed = self._header()
        return self.path.stat().st_size + len(renamed) - len(own)

    def content(self) -> bytes:
        """Raises OSError. Runs report some thousand lines at most."""
        own, renamed = self._header()
        return renamed + self.path.read_bytes()[len(own) :]


def figures_at(steps: Collection[tuple[UUID, int]]) -> dict[tuple[UUID, int], Metric]:
    """What was measured at these steps of attempts, by both; one query."""
    attempts, numbers = {attempt for attempt, _ in steps}, {step for _, step in steps}
    rows = Metric.objects.filter(attempt__in=attempts, step__in=numbers)
    return {(row.attempt_id, row.step): row for row in rows}
