"""Reading jobs. The jobs that a person sees are decided here and nowhere else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, Exists, FilteredRelation, OuterRef, Prefetch, Q, QuerySet, Subquery

from portal.accounts.models import User
from portal.accounts.teams import is_lead
from portal.events.models import Event
from portal.events.types import MOVES
from scheduler.errors import NotFound
from scheduler.models import (
    Allocation,
    Artifact,
    Attempt,
    Claim,
    Job,
    JobArray,
    JobDependency,
    LogPiece,
    Metric,
)
from scheduler.models.ids import JOB_ID
from scheduler.selectors.silence import with_nodes_heard
from scheduler.states import TERMINAL, JobState, StopFor, is_preempting, public_state
from trainer.protocol import Phase

OUTPUT = "output/"  # where nodes leave what was learnt
SHOWN_LOG = 16_000  # characters of a log's end
GLANCE = (
    *("version", "state", "stop_for", "first_started_at", "step", "total_steps", "loss"),
    *("wait_code", "wait_text"),
)
DETAILS = ("options", "evidence", "notes", "chosen", "params", "binding", "fixed")


class JobColumns(NamedTuple):
    """The columns of a job that a decision needs.

    A tick reads thousands of jobs, and objects of the model cost several times as much.
    """

    id: str
    owner_id: int
    version: int
    options_for: str
    submitted_at: datetime
    first_started_at: datetime | None
    deadline_at: datetime | None
    budget: float | None
    array_id: str | None
    begin_at: datetime | None
    priority: int
    preemptible: bool
    team_id: int | None
    goal: str
    topology: str
    topology_level: int | None
    state: str
    state_since: datetime
    stop_for: str
    step: int
    total_steps: int | None
    wait_code: str
    wait_text: str
    held_at: datetime | None
    held_note: str
    spot: bool
    max_run_s: int | None
    front_at: datetime | None
    model: str

    @property
    def pk(self) -> str:
        return self.id

    @property
    def preempting(self) -> bool:
        """Does it leave its GPUs to another job, or move?"""
        return is_preempting(self.state, self.stop_for)


def job_columns(jobs: QuerySet[Job]) -> list[JobColumns]:
    """The jobs in their order, as far as a decision needs them."""
    return list(map(JobColumns._make, jobs.values_list(*JobColumns._fields)))


def visible_jobs(user: User) -> QuerySet[Job]:
    """The user's jobs and those of their teams; all for administrators.

    A token that is bound to a team sees that team's alone.
    """
    if user.is_admin:
        return Job.objects.all()
    if user.bound_team_id is not None:
        return Job.objects.filter(team__in=user.team_ids)
    return Job.objects.filter(Q(owner=user) | Q(team__in=user.team_ids))


def no_jobs() -> QuerySet[Job]:
    """None, for those who need a query set before they know who asks."""
    return Job.objects.none()


def sees(user: User, job: Job) -> bool:
    """Return whether `visible_jobs` has the job, by its own columns."""
    own = job.owner_id == user.pk and user.bound_team_id is None
    return user.is_admin or own or (job.team_id or 0) in user.team_ids


def jobs_named_in(user: User, texts: Iterable[str]) -> dict[str, Job]:
    """The jobs that the person sees among those that the texts name by id.

    No query where none is named.
    """
    ids = {found for text in texts for found in JOB_ID.findall(text)}
    return {job.pk: job for job in visible_jobs(user).filter(pk__in=ids).only("name")} if ids else {}


def may_change(actor: User, job: Job) -> bool:
    """May the actor change the job? Its owner, team leads and administrators may."""
    if actor.changes_own_alone:
        return job.owner_id == actor.pk
    return actor.is_admin or job.owner_id == actor.pk or bool(job.team and is_lead(actor, job.team))


def for_lists(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Read jobs with owners, teams, attempts and newest forecasts of starts.

    Fields that only a job's own page shows are left out.
    """
    attempts = Prefetch("attempts", Attempt.objects.defer("option", "prediction"))
    rows = with_nodes_heard(with_forecasts(jobs)).select_related("owner", "team")
    return rows.defer(*DETAILS).prefetch_related(attempts)


def with_forecasts(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Read the newest forecast of each job's start with it, for `newest_forecast`."""
    newest = FilteredRelation("start_forecasts", condition=Q(start_forecasts__first=False))
    return jobs.annotate(shown_forecast=newest).select_related("shown_forecast")  # type: ignore[misc]  # a relation, too


def glance_at(user: User, job_id: str) -> Job:
    """The job's state and progress alone, in one query.

    Raises NotFound as `get_job` does.
    """
    found = visible_jobs(user).filter(pk=job_id).only(*GLANCE).first()
    if found is None:
        raise _no_job(job_id)
    return found


def _no_job(job_id: str) -> NotFound:
    return NotFound(f"There is no job {job_id}.")


def get_job(user: User, job_id: str) -> Job:
    """The job with its attempts, claims and GPUs, in a constant number of queries.

    Raises NotFound for a foreign job just as for one that does not exist.
    """
    claims = Claim.objects.select_related("node").prefetch_related(
        Prefetch("allocations", Allocation.objects.select_related("gpu"))
    )
    attempts = Attempt.objects.prefetch_related(Prefetch("claims", claims))
    found = (
        with_nodes_heard(with_forecasts(visible_jobs(user)))
        .filter(pk=job_id)
        .select_related("owner", "team", "training_file", "validation_file")
        .annotate(follows=Exists(JobDependency.objects.filter(job=OuterRef("pk"))))
        .prefetch_related(Prefetch("attempts", attempts))
        .first()
    )
    if found is None:
        raise _no_job(job_id)
    return found


def get_array(user: User, array_id: str) -> JobArray:
    """An array of which the user sees a job at least. Raises NotFound."""
    found = array_named(user, array_id)
    if found is None:
        raise NotFound(f"There is no array {array_id}.")
    return found


def array_named(user: User, text: str) -> JobArray | None:
    """The array of this id, if it is one that the user sees; no query for other texts."""
    if not text.startswith(JobArray.PREFIX):
        return None
    rows = JobArray.objects.select_related("owner")
    return rows.filter(pk=text, pk__in=visible_jobs(user).values("array_id")).first()


def all_visible_arrays(user: User) -> QuerySet[JobArray]:
    """The arrays of which the user sees a job at least."""
    rows = JobArray.objects.select_related("owner")
    return rows.filter(Exists(visible_jobs(user).filter(array=OuterRef("pk"))))


def no_arrays() -> QuerySet[JobArray]:
    """None, for those who need a query set before they know who asks."""
    return JobArray.objects.none()


def visible_arrays(user: User, ids: Collection[str]) -> dict[str, JobArray]:
    """The arrays of these ids of which the user sees a job at least.

    No query for ids of other things.
    """
    named = [one for one in ids if one.startswith(JobArray.PREFIX)]
    if not named:
        return {}
    return JobArray.objects.filter(pk__in=visible_jobs(user).values("array_id")).in_bulk(named)


class OpenArray(NamedTuple):
    """An array that goes on; the name is that of its first job."""

    id: str
    jobs: int
    name: str


def open_arrays(user: User, most: int) -> list[OpenArray]:
    """The newest arrays with jobs that the user sees and that have not ended."""
    going_on = visible_jobs(user).exclude(state__in=TERMINAL).exclude(array=None)
    first = Job.objects.filter(array=OuterRef("pk")).order_by("submitted_at").values("name")[:1]
    rows = JobArray.objects.filter(pk__in=going_on.order_by().values("array_id")).order_by("-submitted_at")
    named = rows.annotate(size=Count("jobs"), first=Subquery(first))
    return [OpenArray(*row) for row in named.values_list("pk", "size", "first")[:most]]


def jobs_by_state(user: User, arrays: Collection[str]) -> dict[str, dict[str, int]]:
    """How many jobs of each array, which the user sees, people see in each state."""
    if not arrays:
        return {}
    rows = visible_jobs(user).filter(array__in=arrays).order_by().values_list("array_id", "state", "stop_for")
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for array, state, stop_for in rows:
        found[array][public_state(JobState(state), stop_for)] += 1
    return {array: dict(states) for array, states in found.items()}


def array_jobs(user: User, array: JobArray) -> QuerySet[Job]:
    """The jobs of an array that the user sees, in the order of its values."""
    return for_lists(visible_jobs(user).filter(array=array)).order_by("submitted_at")


def array_values(array: JobArray, jobs: Collection[str]) -> dict[str, dict[str, Any]]:
    """The fixed parameters in which these jobs of an array differ, by job.

    They are compared with each other and with the array's first two, so that a job alone shows its own.
    """
    rows = Job.objects.filter(array=array).order_by("submitted_at").values_list("pk", "fixed")
    fixed = dict(rows.filter(pk__in=jobs)) | dict(rows[:2])
    names = {name for values in fixed.values() for name in values}
    differ = [name for name in sorted(names) if len({str(one.get(name)) for one in fixed.values()}) > 1]
    return {
        job: {name: fixed[job][name] for name in differ if name in fixed[job]} for job in jobs if job in fixed
    }


def events(job: Job) -> QuerySet[Event]:
    """The job's events, oldest first."""
    return job.events.select_related("actor").order_by("number")


def cancellation(job: Job) -> Event | None:
    """The event that cancelled a job, or that asked to stop it for this."""
    if job.state != JobState.CANCELLED:
        return None
    cancelling = Q(new=JobState.CANCELLED) | Q(stop_for=StopFor.CANCEL)
    return events(job).filter(cancelling, type__in=MOVES).first()


def metrics(job: Job) -> QuerySet[Metric]:
    """Progress lines in the order of their arrival.

    It is that of attempts and of their steps.
    """
    rows = Metric.objects.filter(attempt__job=job).select_related("attempt")
    rows = rows.defer("attempt__option", "attempt__prediction", "attempt__measured")  # large, once a line
    return rows.order_by("pk")


def log_text(job: Job, *, offset: int = 0, limit: int = 64_000) -> tuple[str, int]:
    """Return a piece of the log of all attempts and the offset of the next one.

    The piece starts at a character offset. Pieces of several nodes stand in the order of their
    arrival, so that text read once never moves.
    """
    parts: list[str] = []
    position, wanted = 0, offset + limit
    rows = LogPiece.objects.filter(claim__attempt__job=job).order_by("claim__attempt__fence", "pk")
    for text in rows.values_list("text", flat=True).iterator():
        start = max(0, offset - position)
        if start < len(text):
            parts.append(text[start : wanted - position])
        position += len(text)
        if position >= wanted:
            break
    piece = "".join(parts)
    return piece, offset + len(piece)


def log_tail(job: Job) -> str:
    """The last characters of the log, read from its end."""
    parts: list[str] = []
    rows = LogPiece.objects.filter(claim__attempt__job=job).order_by("-claim__attempt__fence", "-pk")
    for text in rows.values_list("text", flat=True).iterator(chunk_size=20):
        parts.append(text)
        if sum(map(len, parts)) >= SHOWN_LOG:
            break
    return "".join(reversed(parts))[-SHOWN_LOG:]


def delivers(job: Job) -> bool:
    """Has its training ended, with files that are still on their way to the portal?"""
    live = Claim.objects.filter(attempt__job=job, attempt__ended_at__isnull=True)
    return live.filter(phase=Phase.DELIVERING).exists()


def artifacts(job: Job) -> QuerySet[Artifact]:
    """Outputs and logs of the job's last attempt; checkpoints are listed apart."""
    last = Attempt.objects.filter(job=job).order_by("-fence").values("pk")[:1]
    return Artifact.objects.filter(job=job, claim__attempt__in=last, claim__rank=0).exclude(
        path__startswith="checkpoints/"
    )


def artifact_file(job: Job, path: str) -> tuple[Path, str]:
    """Where one of the job's artifacts lies, and its SHA-256. Raises NotFound."""
    found = artifacts(job).filter(path=path).first()
    if found is None:
        raise NotFound(f"Job {job.pk} has no artifact {path}.")
    return _content_of(found), found.sha256


def artifact_files(job: Job, *, outputs: bool) -> list[tuple[Artifact, Path]]:
    """The job's artifacts, by name, and where they lie.

    outputs: those alone that it learnt: adapter or model, with what it is loaded by. Raises NotFound where
    there is none, or where one is missing.
    """
    found = artifacts(job).filter(path__startswith=OUTPUT if outputs else "")
    files = [(artifact, _content_of(artifact)) for artifact in found]
    if not files:
        raise NotFound(f"Job {job.pk} has left no files.")
    return files


def _content_of(artifact: Artifact) -> Path:
    """Raises NotFound."""
    file = Path(settings.DATA_DIR, "artifacts", artifact.job_id, str(artifact.claim_id), artifact.path)
    if not file.is_file():
        raise NotFound(f"The content of artifact {artifact.path} is missing at the portal.")
    return file
