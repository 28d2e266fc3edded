"""Changes around a waiting job: of limits, windows and other jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.changes.queue import without_job
from scheduler.core.eligibility import comes_after
from scheduler.core.limits import ALL_MODELS, Limits, Quota, Window
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.quotas.ledger import Ledger
from scheduler.core.types import JobInfo
from scheduler.states import WaitState

WINDOWS = 2
AWAITED = 2
RUNNING = 3
COUNTED = 50  # running jobs of which it is asked whether a limit would do without them
OF_USER = frozenset({WaitState.QUOTA_USER, WaitState.HOURS_USER})

Change = tuple[str, PlayInput]  # what it is about, and the queue with it


def quota_changes(given: PlayInput, job: JobInfo) -> Iterator[Change]:
    """The limits that refuse every option of the job now, lifted."""
    limits = given.state.limits
    if not limits or not job.options:
        return
    ledger = Ledger(given.state)
    refusals = [ledger.refusal(job, option) for option in job.options]
    codes = {wait.code if wait else None for wait in refusals}
    if None in codes:
        return
    if codes & OF_USER:
        users = tuple(limit for limit in limits.users if limit.user != job.user)
        yield "user", _limited(given, replace(limits, users=users))
    if WaitState.QUOTA_TEAM in codes:
        yield "team", _limited(given, replace(limits, quotas=_with_more(limits, ledger, job)))


def _limited(given: PlayInput, limits: Limits) -> PlayInput:
    return replace(given, state=replace(given.state, limits=limits))


def _with_more(limits: Limits, ledger: Ledger, job: JobInfo) -> tuple[Quota, ...]:
    """The quotas with as much guaranteed to its team as the job still needs."""
    best = job.options[0]
    found = {(quota.team, quota.gpu_model): quota for quota in limits.quotas}
    for model in (best.gpu_model, ALL_MODELS):
        if any(quota.gpu_model == model for quota in limits.quotas):
            needs = ledger.held[model, job.team] + best.gpus
            known = found.get((job.team, model), Quota(team=job.team, gpu_model=model))
            found[job.team, model] = replace(known, guaranteed=max(needs, known.guaranteed))
    return tuple(found.values())


def windows_of(given: PlayInput, job: JobInfo) -> list[Window]:
    """The first windows on nodes that could hold the job."""
    models = {option.gpu_model for option in job.options}
    suited = {node.id for node in given.state.nodes if node.gpu_model in models}
    mine = (one for one in given.state.windows if one.nodes & suited and not one.admits(job.team))
    return list(islice(mine, WINDOWS))


def window_changes(given: PlayInput, job: JobInfo) -> Iterator[Change]:
    """Windows on nodes that could hold the job, each without it."""
    state = given.state
    for window in windows_of(given, job):
        left = tuple(one for one in state.windows if one is not window)
        yield window.in_words, replace(given, state=replace(state, windows=left))


def without_others(given: PlayInput, job: JobInfo) -> Iterator[Change]:
    """Other jobs, each as if it ended now.

    They run, and are jobs that it comes after, or whose GPUs or share of a limit would be enough.
    """
    running = {one.id: one for one in given.state.running}
    named = [running[name] for name in job.awaits if name in running]
    of_arrays = [one for one in running.values() if one.id not in job.awaits and comes_after(job, one)]
    awaited = named + of_arrays
    for other in (*awaited[:AWAITED], *islice(_in_the_way(given, job), RUNNING)):
        yield other.id, without_job(given, other)


def _in_the_way(given: PlayInput, job: JobInfo) -> Iterator[JobInfo]:
    """Running jobs that leave room for it when they end, its own user's first.

    Where a limit refuses it, they are those without which it would be within.
    """
    free = FreeGpus(given.state.nodes)
    fits, allowed = any(free.place(option, job) for option in job.options), _is_allowed(given, job)
    if (fits and allowed) or not job.options:
        return
    nearest = sorted(
        given.state.running,
        key=lambda one: (one.user != job.user, one.team != job.team, -(one.releases_in_s or 0.0), one.id),
    )
    makes_room = [one for one in nearest if fits or _leaves_room(free, one, job)]
    for one in makes_room if allowed else makes_room[:COUNTED]:
        if not comes_after(job, one) and (allowed or _is_allowed(without_job(given, one), job)):
            yield one


def _is_allowed(given: PlayInput, job: JobInfo) -> bool:
    """Is it within all limits with one of its options?"""
    if not given.state.limits:
        return True
    ledger = Ledger(given.state)
    return any(ledger.refusal(job, option) is None for option in job.options)


def _leaves_room(free: FreeGpus, running: JobInfo, job: JobInfo) -> bool:
    if running.holds is None:
        return False
    option, gpus = running.holds.option, running.holds.gpus
    free.give(option, gpus)
    fits = any(free.place(one, job) for one in job.options if one.gpu_model == option.gpu_model)
    free.take(option, gpus)
    return fits
