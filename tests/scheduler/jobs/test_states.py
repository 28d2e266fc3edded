"""The state table against the contract, and the mover against the table."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from portal.clock import database_now
from portal.events.models import Event
from scheduler.errors import IllegalTransition, StaleJob
from scheduler.models import Job
from scheduler.services.jobs.transitions import Note, move_all, move_job
from scheduler.states import (
    BUDGETS,
    LIVE,
    STOPPABLE,
    STOPPED_TO,
    TERMINAL,
    TRANSITIONS,
    JobState,
    Outcome,
    StopFor,
    public_state,
)  # fmt: skip
from tests.harness import world

PUBLIC = {"queued", "running", "pausing", "paused", "succeeded", "failed", "cancelled"}


def test_every_state_stop_and_outcome_has_its_row() -> None:
    assert set(TRANSITIONS) == set(JobState)
    assert set(STOPPED_TO) == set(StopFor)
    assert set(BUDGETS) == set(Outcome)
    assert {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED} == TERMINAL
    for stop_for, to in STOPPED_TO.items():
        assert to in TRANSITIONS[JobState.STOPPING], stop_for


def test_every_state_can_reach_an_end() -> None:
    reachable: set[JobState] = set(TERMINAL)
    for _ in JobState:
        reachable |= {state for state, following in TRANSITIONS.items() if following & reachable}
    assert reachable == set(JobState)


def test_people_see_the_openai_names() -> None:
    for state in JobState:
        for stop_for in StopFor if state is JobState.STOPPING else ("",):
            assert public_state(state, stop_for) in PUBLIC


@pytest.mark.django_db
@pytest.mark.parametrize("old", list(JobState))
def test_only_listed_transitions_happen(old: JobState) -> None:
    """I2, I3"""
    job = world.job()
    for new in JobState:
        stop_for = StopFor.PAUSE if old is JobState.STOPPING else ""
        Job.objects.filter(pk=job.pk).update(state=old, stop_for=stop_for)
        job.refresh_from_db()
        stop = StopFor.PAUSE if new is JobState.STOPPING else None
        before = job.version
        if new in TRANSITIONS[old]:
            move_job(job=job, to=new, now=database_now(), stop_for=stop, data=DATA.get(new))
            assert (job.state, job.version) == (new, before + 1)
        else:
            with pytest.raises(IllegalTransition):
                move_job(job=job, to=new, now=database_now(), stop_for=stop)
            job.refresh_from_db()
            assert (job.state, job.version) == (old, before)


@pytest.mark.django_db
def test_a_job_that_moved_meanwhile_is_stale() -> None:
    job = world.job()
    twin = Job.objects.get(pk=job.pk)
    move_job(job=job, to=JobState.PAUSED, now=database_now())
    with pytest.raises(StaleJob):
        move_job(job=twin, to=JobState.PAUSED, now=database_now())


def test_live_states_are_those_with_an_attempt() -> None:
    assert not LIVE & (TERMINAL | {JobState.QUEUED, JobState.PAUSED})


DATA = {
    JobState.ASSIGNED: {"attempt": "a", "option": "cpu:1x1", "gpus": [["node-1", 0]]},
    JobState.STOPPING: {"stop_reason": "class"},
}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("old", "to", "stop_for"),
    [
        (JobState.QUEUED, JobState.ASSIGNED, None),
        *((old, JobState.STOPPING, StopFor.PREEMPT) for old in sorted(STOPPABLE)),
    ],
)
def test_jobs_move_together_as_they_do_one_by_one(
    old: JobState, to: JobState, stop_for: StopFor | None
) -> None:
    """Their rows and events are equal, however long they were seen waiting."""
    jobs, now = [world.job() for _ in range(3)], database_now()
    Job.objects.update(state=old, state_since=now - timedelta(seconds=50), shown_since=None, waited_s=7.0)
    one, *others = Job.objects.filter(pk__in=[job.pk for job in jobs])
    fence = int(to is JobState.ASSIGNED)
    move_job(job=one, to=to, stop_for=stop_for, now=now, reason="x", data=DATA.get(to, {}), fence=fence)
    notes = dict.fromkeys(others, Note("x", DATA.get(to, {})))
    move_all(notes=notes, to=to, stop_for=stop_for, now=now)
    columns = ("state", "stop_for", "version", "state_since", "shown_since", "fence")
    assert len({*Job.objects.values_list(*columns)}) == 1
    waited = list(Job.objects.values_list("waited_s", flat=True))
    assert waited == pytest.approx([57.0 if public_state(old, "") == "queued" else 7.0] * 3, abs=0.001)
    told = Event.objects.filter(number=2)
    events = told.values_list("number", "old", "new", "stop_for", "fence", "reason", "data", "actor", "at")
    assert len(events) == 3
    assert len({repr(event) for event in events}) == 1
    expected = (to, stop_for or "", 2, fence)
    assert [(job.state, job.stop_for, job.version, job.fence) for job in others] == [expected] * 2
    with pytest.raises(IllegalTransition), transaction.atomic():
        move_all(notes=notes, to=JobState.RUNNING, now=now)
    Job.objects.update(state=old, stop_for="")
    both = list(Job.objects.filter(pk__in=[job.pk for job in others]))
    Job.objects.filter(pk=both[1].pk).update(version=7)
    with pytest.raises(StaleJob):
        move_all(notes=dict.fromkeys(both, Note("x", {})), to=to, stop_for=stop_for, now=now)
