"""A job runs for as long as it may, and no longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from knowledge.core.domain.types import Interval
from portal.clock import database_now
from portal.events.models import Event
from scheduler.core.ahead.durations import Draws
from scheduler.core.ahead.play import QueuePlay
from scheduler.core.ahead.play_input import PlayInput
from scheduler.core.limits import Window
from scheduler.core.policies import POLICIES
from scheduler.core.quotas import admission
from scheduler.core.types import ClusterState, Start
from scheduler.errors import BadParameters
from scheduler.loop.snapshot import take_snapshot
from scheduler.loop.sweeps import sweep
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Checkpoint, Job
from scheduler.selectors.analysis.failures import explained
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.quotas import LimitValues, set_limit
from scheduler.states import FailureCode, JobState, StopFor
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.harness.invariants import assert_sound
from tests.scheduler.core.clusters import job, node, option, running
from tests.scheduler.simulator import worlds
from tests.scheduler.simulator.worlds import finishes, play
from trainer.protocol import ClaimOrder

HOUR_S = 3600
START = {"kind": "start", "body": {"steps_total": 100, "rows": 20, "row_tokens": 600}}


def ran_for(of: Job, seconds: float) -> None:
    """As if its attempt had begun so long before."""
    earlier = timedelta(seconds=seconds)
    for attempt in of.attempts.filter(ended_at__isnull=True):
        attempt.created_at -= earlier
        attempt.stops_at = attempt.stops_at and attempt.stops_at - earlier
        attempt.save(update_fields=["created_at", "stops_at"])


def started(node: FakeNode, **values: Any) -> tuple[Job, ClaimOrder]:
    made = world.placed_job(node, max_run_s=HOUR_S, **values)
    order = node.take_up()
    node.run(order, START, step(1))
    return made, order


@pytest.mark.django_db
def test_at_its_limit_a_job_saves_stops_and_fails_with_its_checkpoint(node: FakeNode) -> None:
    made, order = started(node)
    node.save_checkpoint(order, 4)
    ran_for(made, HOUR_S - 60)
    tick()
    assert world.state_of(made) == JobState.RUNNING
    ran_for(made, 61)
    tick()
    made.refresh_from_db()
    assert (made.state, made.stop_for) == (JobState.STOPPING, StopFor.TIME_LIMIT)
    reply = node.sync(node.say(order, "running"))
    assert (reply.claims[0].want, reply.claims[0].stop_for) == ("stop", "time-limit")
    node.end(order, "stopped")
    made.refresh_from_db()
    assert (made.state, made.failure_class, made.failure_code) == (
        "failed",
        "resource",
        FailureCode.TIME_LIMIT,
    )
    assert made.failure_reason == "It reached its time limit of 1 h. The checkpoint at step 4 is kept."
    assert Checkpoint.objects.filter(job=made).exists()
    cause = explained(made)
    assert cause is not None
    assert cause.cause.name == "time-limit"
    assert world.open_allocations() == 0
    assert_sound()


@pytest.mark.django_db
def test_all_attempts_count_and_waiting_does_not(node: FakeNode) -> None:
    made, order = started(node)
    ran_for(made, 0.75 * HOUR_S)
    node.end(order, "killed")
    assert world.state_of(made) == JobState.QUEUED
    Attempt.objects.update(ended_at=database_now())
    left_s = take_snapshot({}, database_now()).jobs[0].run_left_s
    assert left_s == pytest.approx(0.25 * HOUR_S, abs=30)
    tick()
    attempt = made.attempts.get(ended_at__isnull=True)
    assert attempt.stops_at is not None
    assert (attempt.stops_at - attempt.created_at).total_seconds() == pytest.approx(left_s, abs=30)
    ran_for(made, HOUR_S)
    node.sync()
    node.end(node.take_up(), "killed")
    made.refresh_from_db()
    assert (made.state, made.failure_code) == (JobState.FAILED, FailureCode.TIME_LIMIT), "it starts no more"


@pytest.mark.django_db
def test_a_cancel_goes_before_the_limit_and_a_finish_is_a_success(node: FakeNode) -> None:
    made, order = started(node)
    ran_for(made, HOUR_S)
    tick()
    cancel_job(job=made, actor=made.owner, now=database_now())
    node.end(order, "stopped")
    assert world.state_of(made) == JobState.CANCELLED
    made, order = started(node)
    ran_for(made, HOUR_S)
    tick()
    node.end(order, "succeeded", step(100))
    assert world.state_of(made) == JobState.SUCCEEDED


@pytest.mark.django_db
def test_a_job_that_will_not_end_in_time_is_warned_and_gets_more_time(node: FakeNode) -> None:
    made, order = started(node)
    slow = [{**step(n), "body": {**step(n)["body"], "step_s": 100.0}} for n in range(2, 7)]
    node.run(order, *slow)
    sweep(database_now())
    assert [warning["code"] for warning in Attempt.objects.get().warnings] == ["time-limit"]
    change_job(job=made, actor=world.admin(), now=database_now(), max_run_s=100 * HOUR_S)
    node.run(order, {**step(7), "body": {**step(7)["body"], "step_s": 100.0}})
    assert Attempt.objects.get().warnings == []
    assert Event.objects.get(subject=made.pk, type="job.changed").reason == "It may run for 100 h now."
    ran_for(made, 2 * HOUR_S)
    tick()
    assert world.state_of(made) == JobState.RUNNING
    with pytest.raises(BadParameters) as refused:
        change_job(job=made, actor=world.admin(), now=database_now(), max_run_s=HOUR_S)
    assert "(2 h), which the job has run already; choose a longer" in refused.value.fields["max_run_s"]
    tick()
    assert world.state_of(made) == JobState.RUNNING


@pytest.mark.django_db
def test_nobody_asks_for_more_than_an_administrator_allows() -> None:
    ada, admin = world.user(), world.admin()
    world.fake_node()
    set_limit(user=None, values=LimitValues(max_run_s=HOUR_S), actor=admin, now=database_now())
    made = world.job(ada)
    assert made.max_run_s == HOUR_S, "a job that asks for nothing has the limit of its owner"
    assert world.job(ada, max_run_s=1800).max_run_s == 1800
    for wrong in (HOUR_S + 1, 0, -1, 10**12):
        with pytest.raises(BadParameters) as refused:
            world.job(ada, max_run_s=wrong)
        assert list(refused.value.fields) == ["max_run_s"]
    with pytest.raises(BadParameters):
        change_job(job=made, actor=ada, now=database_now(), max_run_s=2 * HOUR_S)
    allowed = change_job(job=made, actor=admin, now=database_now(), max_run_s=2 * HOUR_S)
    assert allowed.max_run_s == 2 * HOUR_S
    with pytest.raises(BadParameters):
        set_limit(user=None, values=LimitValues(max_run_s=0), actor=admin, now=database_now())


@pytest.mark.django_db
def test_a_limit_is_compared_with_the_promise() -> None:
    person = world.user()
    world.fake_node()
    steps = {"max_steps": 20_000}
    promised = world.job(person, params=steps).promised
    assert promised is not None
    with pytest.raises(BadParameters) as refused:
        world.job(person, params=steps, max_run_s=max(1, int(promised.startup_s)))
    assert "must exceed the promised start-up" in refused.value.fields["max_run_s"]
    short = world.job(person, params=steps, max_run_s=int(promised.startup_s) + 2)
    assert any("is stopped after" in note for note in short.notes)


def test_others_are_promised_its_gpus_by_its_limit_at_the_latest() -> None:
    there = running("r", option(duration_s=5000.0), ("a", 0))
    assert there.releases_in_s == 5000.0
    assert replace(there, run_left_s=600.0).releases_in_s == 600.0
    unknown = running("u", option(duration_s=0.0), ("a", 0))
    assert replace(unknown, run_left_s=600.0).releases_in_s == 600.0


def test_a_job_that_is_over_before_a_window_starts_before_it() -> None:
    window = Window(closes_at=2.0 * HOUR_S, ends_at=9.0 * HOUR_S, nodes=frozenset({"a"}))
    long = job("j", option(duration_s=5.0 * HOUR_S), borrows=False, preemptible=False)
    for limited, starts in ((long, False), (replace(long, run_left_s=1.0 * HOUR_S), True)):
        state = ClusterState(jobs=(limited,), nodes=(node("a", 1),), windows=(window,))
        plan = admission.decide(POLICIES["fifo"], state, 0.0)
        assert isinstance(plan.actions[0], Start) is starts


def test_a_queue_played_ahead_keeps_limits() -> None:
    sure = replace(option(duration_s=900.0), duration_s=Interval(900.0, 900.0, 900.0))
    jobs = (running("r", sure, ("a", 0), since=-40.0, run_left_s=100.0), job("j", sure, run_left_s=50.0))
    state = ClusterState(jobs=jobs, nodes=(replace(node("a", 1), free=()),))
    lived = QueuePlay(PlayInput(state=state, now=0.0, policy=POLICIES["fifo"]), Draws(), 0).run()
    assert (lived["j"].start, lived["j"].end) == (100.0, 150.0)


@pytest.mark.parametrize("policy", ["fifo", "easy"])
def test_the_simulator_keeps_limits_and_cancels_what_comes_after(policy: str) -> None:
    jobs = [
        worlds.job("long", runs_s=500.0, max_run_s=200.0),
        worlds.job("after", 1.0, after="long"),
        worlds.job("next", 2.0),
        worlds.job("fits", 3.0, max_run_s=100.0),
    ]
    engine = play(jobs, "gpu:1x1", policy)
    ends = finishes(engine)
    assert (ends["long"], ends["after"]) == (None, None)
    assert (ends["next"], ends["fits"]) == (300.0, 400.0)
    assert engine.open == 0


def test_preemptions_are_no_way_around_a_limit_in_the_simulator() -> None:
    jobs = [worlds.job("long", runs_s=500.0, max_run_s=200.0), worlds.job("short", 100.0, runs_s=50.0)]
    engine = play(jobs, "gpu:1x1", "srtf", round_s=10.0)
    assert (engine.runs["long"].preemptions, finishes(engine)["short"]) == (1, 150.0)
    assert engine.runs["long"].attained_gpu_s == pytest.approx(200.0)
    assert engine.runs["long"].finished is None
