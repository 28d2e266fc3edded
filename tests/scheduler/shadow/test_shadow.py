"""A policy on probation on a live portal: real rows, and nothing that it decides is carried out."""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta

import pytest

from portal.clock import database_now
from scheduler.errors import BadParameters, Conflict
from scheduler.loop.predict.shadow import bring_up_to_date
from scheduler.loop.tick import tick
from scheduler.models import Job, Node, ShadowJob, ShadowPolicy
from scheduler.selectors.cluster.shadow import before_and_after, compared
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.policy import choose_policy
from scheduler.services.shadow import end_shadow, start_shadow
from scheduler.states import JobState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step

pytestmark = pytest.mark.django_db


def on_probation(name: str = "sjf") -> ShadowPolicy:
    shadow = start_shadow(name=name, actor=world.admin(), now=database_now())
    assert bring_up_to_date(database_now()) is not None
    return shadow


def later(seconds: float) -> datetime:
    """A moment at which the nodes have just been heard of."""
    moment = database_now() + timedelta(seconds=seconds)
    Node.objects.update(last_seen_at=moment)
    return moment


def in_the_shadow(job: Job) -> ShadowJob:
    return ShadowJob.objects.get(job=job)


def test_what_runs_goes_on_and_the_shadow_starts_what_its_policy_prefers() -> None:
    node = world.fake_node(slots=1)
    runs = world.placed_job(node)
    shadow = on_probation("sjf")
    long, short = world.job(params={"epochs": 50}), world.job(params={"epochs": 1})
    tick()
    assert in_the_shadow(runs).started_at is not None
    promised = float(runs.attempts.get().promised.duration_s.value)
    bring_up_to_date(later(3 * promised + 300))
    assert in_the_shadow(runs).ended_at is not None
    first, then = in_the_shadow(short).started_at, in_the_shadow(long).started_at
    assert first is not None
    assert then is None or then > first
    assert {world.state_of(long), world.state_of(short)} == {JobState.QUEUED}
    seen = compared(ShadowPolicy.objects.get(pk=shadow.pk))
    assert (seen.jobs, seen.real.started, seen.earlier >= 1) == (2, 0, True)


def test_under_the_policy_that_decides_the_shadow_does_what_really_happens(node: FakeNode) -> None:
    on_probation("fifo")
    jobs = [world.job() for _ in range(4)]
    assert tick().started == 2
    bring_up_to_date(later(1))
    started = ShadowJob.objects.filter(started_at__isnull=False)
    assert {row.job_id for row in started} == {job.pk for job in jobs[:2]}


def test_a_true_duration_replaces_the_promised_one() -> None:
    node = world.fake_node(slots=1)
    shadow = on_probation("fifo")
    job = world.placed_job(node)
    bring_up_to_date(later(0.5))
    assert in_the_shadow(job).started_at is not None
    order = node.take_up()
    node.end(order, "succeeded", step(1), result())
    assert world.state_of(job) == JobState.SUCCEEDED
    bring_up_to_date(later(60))
    assert in_the_shadow(job).ended_at is not None
    seen = compared(ShadowPolicy.objects.get(pk=shadow.pk))
    assert seen.ended == 1
    assert seen.real.jct_s is not None
    assert seen.shadowed.jct_s is not None


def test_a_cancelled_job_is_compared_with_nothing() -> None:
    world.fake_node(slots=1)
    shadow = on_probation()
    job = world.job()
    bring_up_to_date(later(1))
    cancel_job(job=job, actor=job.owner, now=database_now())
    bring_up_to_date(later(2))
    assert compared(ShadowPolicy.objects.get(pk=shadow.pk)).jobs == 0


def test_of_two_workers_one_counts() -> None:
    world.fake_node(slots=1)
    shadow = on_probation()
    ShadowPolicy.objects.filter(pk=shadow.pk).update(turn=7)
    stale = ShadowPolicy.objects.get(pk=shadow.pk)
    assert bring_up_to_date(later(5)) is not None
    stale.refresh_from_db()
    assert stale.turn == 8


def test_an_occupancy_that_cannot_be_read_begins_anew_and_says_so() -> None:
    world.fake_node(slots=1)
    shadow = on_probation()
    other = zlib.compress(b'{"input": "", "options": {}}')
    ShadowPolicy.objects.filter(pk=shadow.pk).update(world=other)
    bring_up_to_date(later(5))
    assert "anew" in ShadowPolicy.objects.get(pk=shadow.pk).trouble


def test_what_cannot_be_put_on_probation_is_refused_by_name() -> None:
    admin, now = world.admin(), database_now()
    with pytest.raises(BadParameters, match="simulator only"):
        start_shadow(name="pollux", actor=admin, now=now)
    with pytest.raises(BadParameters, match="is no policy"):
        start_shadow(name="best", actor=admin, now=now)
    start_shadow(name="srtf", actor=admin, now=now, parameters={"min_run_s": 30.0})
    with pytest.raises(Conflict, match="End its probation first"):
        start_shadow(name="sjf", actor=admin, now=now)
    end_shadow(actor=admin, now=now)
    start_shadow(name="sjf", actor=admin, now=now)
    assert ShadowPolicy.objects.count() == 2


def test_equally_long_times_stand_before_and_after_a_switch(node: FakeNode) -> None:
    assert before_and_after(database_now()) is None
    admin, now = world.admin(), database_now()
    choose_policy(name="fifo", actor=admin, reason="", now=now - timedelta(hours=3))
    choose_policy(name="sjf", actor=admin, reason="", now=now - timedelta(hours=1))
    world.placed_job(node)
    node.run(node.take_up(), step(1))
    found = before_and_after(database_now() + timedelta(seconds=1))
    assert found is not None
    before, after = found
    assert (before.policy, after.policy) == ("fifo", "sjf")
    assert (before.started, after.started) == (0, 1)
    assert before.ended_at - before.began_at == after.ended_at - after.began_at
