"""Changing a job in place, after it was submitted.

The table of terms says which can be changed until it ends, and which only while it waits. A recommendation
is made anew where these need it, before the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.errors import NotAllowed
from portal.accounts.models import User
from portal.accounts.services import audit
from portal.events.types import EventType
from scheduler import hints
from scheduler.core.job_terms import CHANGEABLE, Change, problems
from scheduler.errors import BadParameters, IllegalTransition, StaleJob
from scheduler.models import Job, PendingStart, StartForecast
from scheduler.selectors.figures.times import duration_s
from scheduler.selectors.jobs import may_change
from scheduler.services.jobs.hand_over import let_lapse
from scheduler.services.jobs.new_terms import as_changed, new_terms
from scheduler.services.jobs.priorities import check_class
from scheduler.services.jobs.recommend import clean_request
from scheduler.services.jobs.terms.closeness import INSISTS, check_closeness
from scheduler.services.jobs.terms.run_limits import run_limit, stops_at
from scheduler.services.jobs.transitions import locked, note_job
from scheduler.states import TERMINAL, JobState, public_state
from trainer.recipes import RECIPES, Binds

WAITING = frozenset({JobState.QUEUED, JobState.PAUSED})
RENEWED_BY = frozenset(term.column for term in CHANGEABLE.values() if term.renews)
CLOSENESS = frozenset({"topology", "topology_level"})
LOOK_AGAIN = "look again, and then change it"


def change_job(
    *,
    job: Job,
    actor: User,
    now: datetime,
    seen: str | None = None,
    version: int | None = None,
    **change: Any,
) -> Job:
    """Change a job; what stays as it is leaves no event.

    change: terms by name (scheduler.core.job_terms); one that is left out stays as it is. In `params`, None
    leaves a value open again; a `max_run_s` of None is what the actor's jobs may. seen, version: the state
    and the version that the actor saw; None does not ask. Raises NotAllowed, BadParameters,
    IllegalTransition, StaleJob.
    """
    if not may_change(actor, job):
        raise NotAllowed("Only its owner, a lead of its team and administrators may change a job.")
    read = Job.objects.select_related("training_file", "validation_file").get(pk=job.pk)
    _require_as_seen(read, seen, version)
    _require_terms(change)
    if change.get("max_run_s", read.max_run_s) != read.max_run_s:
        ran_s = duration_s(list(read.attempts.all()), now)
        limit = run_limit(requested=change["max_run_s"], actor=actor, promise=read.promise, ran_s=ran_s)
        change["max_run_s"] = limit.max_run_s
    changed = _differing(read, change)
    _require_waiting(read, changed)
    _check(read, changed, actor)
    terms = new_terms(read, changed, now) if changed.keys() & RENEWED_BY else {}
    with transaction.atomic():
        job = locked(job.pk)
        _require_as_seen(job, seen, read.version if terms else version)
        changed = _differing(job, change)
        _require_waiting(job, changed)
        return _store(job, changed, terms, actor, now) if changed else job


def _require_terms(change: dict[str, Any]) -> None:
    """Raise BadParameters for values that no job could have.

    A level of closeness goes where its topology goes.
    """
    if others := change.keys() - CHANGEABLE.keys():
        raise TypeError(f"{', '.join(sorted(others))}: no term that can be changed")
    if wrong := problems(change):
        raise BadParameters(wrong)
    if "topology" in change and change["topology"] not in INSISTS:
        change.setdefault("topology_level", None)


def _differing(job: Job, change: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that would change. Raises BadParameters."""
    differing = {CHANGEABLE[name].column: value for name, value in change.items()}
    if "params" in change:
        differing["fixed"] = clean_request(
            model=job.model, params={**job.fixed, **change["params"]}, recipe=job.recipe
        )
    return {name: value for name, value in differing.items() if value != getattr(job, name)}


def _require_as_seen(job: Job, seen: str | None, version: int | None) -> None:
    state = public_state(JobState(job.state), job.stop_for)
    if job.state in TERMINAL:
        raise IllegalTransition(f"The job is {state} and cannot be changed.", state)
    if seen not in (None, state):
        raise IllegalTransition(
            f"The job is {state} now; {LOOK_AGAIN}.", state, {"seen": f"is {state} now; {LOOK_AGAIN}"}
        )
    if version not in (None, job.version):
        raise StaleJob(
            f"The job has changed since you looked and is {state} now; {LOOK_AGAIN}.",
            {"version": f"is {job.version} now; {LOOK_AGAIN}"},
        )


def _require_waiting(job: Job, changed: Mapping[str, Any]) -> None:
    """Raise IllegalTransition for what cannot be changed any more, at its field."""
    state = public_state(JobState(job.state), job.stop_for)
    names = _fields(job, changed)
    if names and (job.state not in WAITING or PendingStart.objects.filter(job=job).exists()):
        why = "can be changed only while the job waits, and it has just been given GPUs"
        if state == "running":
            why = "can be changed only while the job waits, and it is running"
        raise _refused(state, names, f"{why}; pause it, change it and resume it")
    learnt = {f"params.{name}" for name in RECIPES[job.recipe].binding(Binds.SUBMIT)}
    if job.fence and (late := [name for name in names if name in learnt]):
        raise _refused(
            state, late, "changes what is learnt, and the job has begun; clone it with another value instead"
        )


def _refused(state: str, names: list[str], why: str) -> IllegalTransition:
    return IllegalTransition(f"{', '.join(names)}: {why}.", state, dict.fromkeys(names, why))


def _fields(job: Job, changed: Mapping[str, Any]) -> list[str]:
    """The changes that need a waiting job, by the names of their fields."""
    late = (term.name for term in CHANGEABLE.values() if term.change is Change.WHILE_IT_WAITS)
    names = [name for name in late if name in changed]
    fixed = changed.get("fixed", job.fixed)
    differ = (name for name in {**job.fixed, **fixed} if job.fixed.get(name) != fixed.get(name))
    return [*names, *(f"params.{name}" for name in differ)]


def _check(job: Job, changed: Mapping[str, Any], actor: User) -> None:
    """Raise BadParameters for values beyond the job or the actor's rights."""
    if "priority" in changed:
        check_class(changed["priority"], actor=actor)
    if changed.keys() & {*CLOSENESS, "fixed"}:
        after = as_changed(job, changed)
        check_closeness(after.topology, after.topology_level, after.fixed)


def _store(job: Job, changed: dict[str, Any], terms: Mapping[str, Any], actor: User, now: datetime) -> Job:
    data = _before_and_after(job, changed)
    reason = _sentences(changed, data)
    job = note_job(
        job=job,
        event=EventType.JOB_PROMISE_CHANGED if "promise" in terms else EventType.JOB_CHANGED,
        now=now,
        reason=reason,
        actor=actor,
        data=data,
        **{**changed, **terms},
    )
    if "max_run_s" in changed:
        job.attempts.filter(ended_at__isnull=True).update(stops_at=stops_at(job, now))
    audit(action="job changed", actor=actor, target=job.pk, data=data, now=now)
    StartForecast.objects.filter(job=job).delete()  # of another job, so to speak
    if changed.keys() & CLOSENESS:
        for start in PendingStart.objects.filter(job=job):
            let_lapse(start=start, reason="How close its GPUs shall lie was changed.", now=now)
            job.refresh_from_db()
    hints.tick()
    hints.forecast_starts()
    return job


def _before_and_after(job: Job, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Each field with the value before and the one after, as JSON has them."""
    values = {name: [getattr(job, name), value] for name, value in changed.items() if name != "fixed"}
    fixed = changed.get("fixed", job.fixed)
    for name in {**job.fixed, **fixed}:
        if job.fixed.get(name) != fixed.get(name):
            values[f"params.{name}"] = [job.fixed.get(name), fixed.get(name)]
    return {name: [_plain(value) for value in pair] for name, pair in values.items()}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _sentences(changed: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    told = [term.sentence(changed[name]) for name, term in CHANGEABLE.items() if name in changed]
    for name, (_, value) in data.items():
        if name.startswith("params."):
            what = name.removeprefix("params.")
            told.append(f"{what} is open now." if value is None else f"{what} is {value} now.")
    return " ".join(dict.fromkeys(told))
