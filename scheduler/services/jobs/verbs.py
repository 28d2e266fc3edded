"""Submitting jobs and the verbs a person has over them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction

from knowledge.core.domain.types import Recommendation
from knowledge.recommendations.recommender import Recommender
from portal.accounts.models import User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from portal.events.types import EventType
from scheduler import hints
from scheduler.core.job_terms import ON_THE_ROW, JobRequest, problems, wants_spot, with_defaults
from scheduler.core.stopping import StopReason
from scheduler.errors import BadParameters, IllegalTransition
from scheduler.models import Job
from scheduler.services.files.storage import refuse_on_full_disk
from scheduler.services.files.uploads import hold_files
from scheduler.services.idempotency import Creation, unkeyed
from scheduler.services.jobs import recommend
from scheduler.services.jobs.dependencies import After, check_order, notes_on_order, store_order
from scheduler.services.jobs.objectives import Objective, aim_of_request
from scheduler.services.jobs.preemptions import note_preemptions, stop_data
from scheduler.services.jobs.priorities import check_class
from scheduler.services.jobs.terms.closeness import check_closeness
from scheduler.services.jobs.terms.run_limits import run_limit
from scheduler.services.jobs.terms.spot import spot_terms
from scheduler.services.jobs.transitions import locked, move_job, note_job, record_submissions
from scheduler.services.provenance.keeping import count_fates, keep_reading
from scheduler.services.provenance.read_values import ReadValues
from scheduler.states import (
    STOPPABLE,
    TERMINAL,
    JobState,
    StopFor,
    WaitState,
    public_state,
)
from trainer.recipes import RECIPES

log = logging.getLogger(__name__)
CANCELLED, CANCEL_ASKED = "Cancelled.", "Cancellation requested."
JOBS_A_QUERY = 100  # their rows are wide


def submit_job(
    *,
    owner: User,
    now: datetime,
    creation: Creation = unkeyed,
    read: Sequence[ReadValues] = (),
    token: str = "",
    **request: Any,
) -> Job:
    """Store a job with everything that was left out filled in from knowledge, queued.

    request: terms by name (scheduler.core.job_terms); read: where their values were read; token: the name
    of the API token that asks. The recommendation
    is asked for before the transaction that `creation` opens. Raises BadParameters, and StorageFull while
    the disk takes no new work.
    """
    recommender = recommend.current_recommender(spot=wants_spot(request))
    prepared = prepare(recommender, owner=owner, now=now, read=read, token=token, **request)
    return submitted(prepared, creation)


class Prepared(NamedTuple):
    """A job that is not stored yet, what it comes after, and what was read for it."""

    job: Job
    after: Sequence[After]
    read: Sequence[ReadValues]


class Terms(NamedTuple):
    """The values that a request fixes, and its aim."""

    fixed: dict[str, Any]
    aim: Objective


def check_request(*, owner: User, now: datetime, **request: Any) -> Terms:
    """Check what can be checked without a recommendation. Raises BadParameters."""
    values = with_defaults(request)
    recipe, wrong = values["recipe"], problems(values)
    times = {name: values[name] for name in ("begin_at", "deadline_at")}
    fixed, aim = dict[str, Any](), Objective()
    with _gathered(wrong):
        fixed = recommend.clean_request(model=values["model"], params=values["params"] or {}, recipe=recipe)
    with _gathered(wrong):
        _check_formats(recipe, values)
    with _gathered(wrong):
        aim = aim_of_request(goal=values["goal"], budget=values["budget"], now=now, **times)
    with _gathered(wrong):
        check_order(after=values["after"], now=now, **times)
    if wrong:
        raise BadParameters(wrong)
    check_class(values["priority"], actor=owner)
    check_closeness(values["topology"], values["topology_level"], fixed)
    return Terms(fixed, aim)


@contextmanager
def _gathered(wrong: dict[str, str]) -> Iterator[None]:
    """Note what is wrong, so that one answer names all of it."""
    try:
        yield
    except BadParameters as refused:
        wrong |= {name: text for name, text in refused.fields.items() if name not in wrong}


def submitted(prepared: Prepared, creation: Creation) -> Job:
    """Store a job, in the transaction that `creation` opens."""
    with creation() as note:
        store([prepared])
        note(prepared.job)
    count_fates(prepared.job, prepared.read)
    log.info("job submitted", extra={"job": prepared.job.pk})
    return prepared.job


def recommend_for(recommender: Recommender, terms: Terms, request: JobRequest) -> Recommendation:
    """What is recommended for a request that was checked.

    Raises BadParameters for an unknown model.
    """
    values = with_defaults(request)
    files = {name: values[name] for name in ("training_file", "validation_file")}
    return recommend.recommend_or_default(
        recommender,
        model=values["model"],
        fixed=terms.fixed,
        workload=recommend.workload_of(model=values["model"], **files),
        aim=terms.aim,
        recipe=values["recipe"],
    )


def _check_formats(recipe: str, values: JobRequest) -> None:
    """Raise BadParameters for files whose rows the recipe does not learn from."""
    if recipe not in RECIPES:
        return
    known = RECIPES[recipe].formats
    files = {name: values[name] for name in ("training_file", "validation_file") if values[name]}
    if wrong := {
        name: f"holds rows of the format {file.format}; the recipe {recipe} learns from {', '.join(known)}"
        for name, file in files.items()
        if file.format not in known
    }:
        raise BadParameters(wrong)


def prepare(
    recommender: Recommender,
    *,
    owner: User,
    now: datetime,
    read: Sequence[ReadValues] = (),
    token: str = "",
    recommended: Mapping[str, Any] | None = None,
    **request: Any,
) -> Prepared:
    """Return a job as it would be stored. Raises BadParameters.

    spot: None is yes if there is a deadline. recommended: the columns of a plan; they are asked for without.
    """
    refuse_on_full_disk()
    fixed, aim = check_request(owner=owner, now=now, **request)
    values = with_defaults(request)
    model = values["model"]
    found = recommended or recommend.recommended_columns(
        recommend_for(recommender, Terms(fixed, aim), values)
    )
    promise = found["promise"]
    terms = spot_terms(
        requested=values["spot"], deadline_at=values["deadline_at"], promise=promise, model=model
    )
    limit = run_limit(requested=values["max_run_s"], actor=owner, promise=promise)
    notes = [*found["notes"], *terms.notes, *limit.notes, *notes_on_order(values["begin_at"], now)]
    job = Job(
        owner=owner,
        submitted_by_token=token,
        fixed=fixed,
        options_for=recommend.options_digest(recommender),
        **{name: values[name] for name in ON_THE_ROW} | {"spot": terms.spot, "max_run_s": limit.max_run_s},
        **{**found, "notes": notes},
        **_begun(now),
    )
    job.team_id = job.team_id or owner.bound_team_id
    return Prepared(job, values["after"], read)


def store(prepared: Sequence[Prepared]) -> None:
    """Store jobs with the same files, within the caller's transaction."""
    first, jobs = prepared[0].job, [one.job for one in prepared]
    hold_files({"training_file": first.training_file, "validation_file": first.validation_file})
    Job.objects.bulk_create(jobs, batch_size=JOBS_A_QUERY)
    store_order((one.job, one.after) for one in prepared)
    for one in prepared:
        keep_reading(one.job, one.read)
    record_submissions(jobs=jobs)
    if first.spot and first.deadline_at:
        hints.markets()


def _begun(now: datetime) -> dict[str, Any]:
    return {"version": 1, "state_since": now, "shown_since": now, "submitted_at": now}


def cancel_job(*, job: Job, actor: User | None, now: datetime, reason: str = "") -> Job:
    """Cancel a job in any state but a final one.

    Its GPUs are free when the nodes have stopped. Cancelling twice changes nothing. Raises
    IllegalTransition when the job ended first: it then stays as it ended, and its event
    `cancel_too_late` says so.
    """
    job = _cancel(job, actor, now, reason)
    if job.state in TERMINAL and job.state != JobState.CANCELLED:
        raise IllegalTransition(f"It had already {job.state}; there is nothing to cancel.", job.state)
    return job


@transaction.atomic
def _cancel(job: Job, actor: User | None, now: datetime, reason: str) -> Job:
    job = locked(job.pk)
    state = JobState(job.state)
    if state is JobState.CANCELLED or job.stop_for == StopFor.CANCEL:
        return job
    if state in TERMINAL:
        return note_job(
            job=job,
            event=EventType.JOB_CANCEL_TOO_LATE,
            now=now,
            actor=actor,
            reason=f"It had already {state}.",
        )
    if state in (JobState.QUEUED, JobState.PAUSED):
        return move_job(job=job, to=JobState.CANCELLED, now=now, reason=reason or CANCELLED, actor=actor)
    return _stop(job, StopFor.CANCEL, now, reason or CANCEL_ASKED, actor)


@transaction.atomic
def pause_job(*, job: Job, actor: User | None, now: datetime) -> Job:
    """Pause a job: at once if it waits, with a checkpoint if it runs.

    Pausing twice changes nothing. Raises IllegalTransition.
    """
    job = locked(job.pk)
    if job.state == JobState.PAUSED or job.stop_for == StopFor.PAUSE:
        return job
    if job.state == JobState.QUEUED:
        # It waits for nothing now; without new options it must not go on, though.
        waits: dict[str, Any] = {"wait_code": "", "wait_text": ""}
        waits = {} if job.wait_code == WaitState.OPTIONS else waits
        return move_job(job=job, to=JobState.PAUSED, now=now, reason="Paused.", actor=actor, **waits)
    return _stop(job, StopFor.PAUSE, now, "Pause requested.", actor)


@transaction.atomic
def resume_job(*, job: Job, actor: User | None, now: datetime) -> Job:
    """Queue a paused job again; it goes on from its last checkpoint.

    One that waits or runs stays as it is. Raises IllegalTransition.
    """
    job = locked(job.pk)
    if job.state == JobState.QUEUED or job.state in STOPPABLE:
        return job
    if job.state != JobState.PAUSED:
        shown = public_state(JobState(job.state), job.stop_for)
        raise IllegalTransition(f"Only a paused job can be resumed; this one is {shown}.", shown)
    return move_job(job=job, to=JobState.QUEUED, now=now, reason="Resumed.", actor=actor)


@transaction.atomic
def preempt_job(*, job: Job, stop_for: StopFor, now: datetime, reason: str, grace_s: float | None) -> Job:
    """Take a running job's GPUs back with a checkpoint.

    Its state once its nodes confirm follows from `stop_for`. A job that stops already, or
    holds no GPUs any more, stays as it is.
    """
    job = locked(job.pk)
    if job.state not in STOPPABLE:
        return job
    return _stop(job, stop_for, now, reason, None, stop_grace_s=grace_s)


@transaction.atomic
def return_to_queue(*, job: Job, actor: User, now: datetime, note: str = "") -> Job:
    """Take a job's GPUs back with a checkpoint, so that it waits again.

    One that waits, or is being stopped for this, stays as it is. For administrators. Raises NotAllowed,
    IllegalTransition.
    """
    require_admin(actor)
    job = locked(job.pk)
    if job.state == JobState.QUEUED or job.stop_for == StopFor.PREEMPT:
        return job
    reason = f"Preempted by an administrator: {note}" if note else "Preempted by an administrator."
    why = StopReason.ADMINISTRATOR
    job = _stop(job, StopFor.PREEMPT, now, reason, actor, data=stop_data(why))
    note_preemptions(reasons={job: why}, now=now)
    audit(action="job preempted", actor=actor, target=job.pk, data={"note": note}, now=now)
    return job


def _stop(job: Job, stop_for: StopFor, now: datetime, reason: str, actor: User | None, **more: Any) -> Job:
    raised = job.state == JobState.STOPPING and stop_for is StopFor.CANCEL
    if job.state not in STOPPABLE and not raised:
        shown = public_state(JobState(job.state), job.stop_for)
        if job.state == JobState.STOPPING:
            message = f"The job is already being stopped ({job.stop_for}); check again in a moment."
        else:
            message = f"A job that is {shown} cannot be stopped ({stop_for})."
        raise IllegalTransition(message, shown)
    return move_job(
        job=job, to=JobState.STOPPING, now=now, reason=reason, stop_for=stop_for, actor=actor,
        **{"stop_grace_s": None, **more},
    )  # fmt: skip
