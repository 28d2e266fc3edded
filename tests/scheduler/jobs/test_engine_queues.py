"""Claims that wait in the queue of their node's own engine.

They wait for as long as that takes, and the time is neither start-up nor duration.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from knowledge.models import Execution
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Claim, Job, Node
from scheduler.selectors.figures.times import duration_s, startup_s
from scheduler.selectors.public_states import shown_state
from scheduler.services.jobs.verbs import cancel_job
from scheduler.states import JobState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step
from trainer.protocol import ClaimOrder

pytestmark = pytest.mark.django_db
LONG_S = 100_000.0  # more than any start may take
START = {"kind": "start", "body": {"steps_total": 10, "startup_s": 3.0}}


@pytest.fixture
def node() -> FakeNode:
    return world.fake_node()


def queued(node: FakeNode, reason: str = "Resources") -> ClaimOrder:
    """The order of a claim that has come into the queue."""
    order = next(order for order in node.sync().claims if order.spec is not None)
    node.sync(node.say(order, "queued", reason=reason))
    return order


def pass_by(job: Job, seconds: float) -> None:
    """Let all times of a placed job lie so much earlier."""
    ago = timedelta(seconds=seconds)
    attempt = job.attempts.get()
    limit = attempt.stops_at and attempt.stops_at - ago
    job.attempts.update(created_at=attempt.created_at - ago, stops_at=limit)
    for claim in Claim.objects.filter(attempt=attempt):
        Claim.objects.filter(pk=claim.pk).update(queued_at=claim.queued_at and claim.queued_at - ago)
    world.age_state(job, seconds)


def test_a_job_in_an_engines_queue_is_queued_for_people_and_waits_beyond_every_time_out(
    node: FakeNode,
) -> None:
    job = world.placed_job(node)
    order = queued(node)
    claim = Claim.objects.get()
    assert (claim.phase, claim.started, claim.engine_reason) == ("queued", False, "Resources")
    assert claim.queued_at is not None
    for _ in range(3):
        pass_by(job, LONG_S)
        node.sync(node.say(order, "queued", reason="Priority"))
        tick()
    job.refresh_from_db()
    assert (job.state, shown_state(job)) == (JobState.ASSIGNED, "queued")
    assert Claim.objects.get().engine_reason == "Priority"
    assert (duration_s([job.attempts.get()], database_now()), job.first_started_at) == (0.0, None)


def test_its_owner_is_told_why_it_waits(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = queued(node, "Resources <all>")
    client = Client()
    client.force_login(job.owner)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert f"it has its place on {Node.objects.get().name}, and has waited in that node's own queue" in page
    assert "(Resources &lt;all&gt;)" in page

    def told() -> dict[str, Any]:
        attempt = client.get(f"/api/jobs/{job.pk}/?fields=attempts").json()["attempts"][0]
        where: dict[str, Any] = attempt["nodes"][0]
        return where

    assert (told()["phase"], told()["engine_reason"], told()["began_at"]) == (
        "queued",
        "Resources <all>",
        None,
    )
    assert told()["queued_at"]
    node.sync(node.say(order, "starting"))
    assert (told()["phase"], told()["engine_reason"]) == ("starting", "")
    assert told()["began_at"]
    assert "own queue" not in client.get(f"/jobs/{job.pk}/").content.decode()


def test_the_start_that_follows_has_all_its_time_and_no_more(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = queued(node)
    pass_by(job, LONG_S)
    node.sync(node.say(order, "starting"))
    tick()
    assert world.state_of(job) == JobState.STARTING
    world.age_state(job, LONG_S)
    tick()
    assert job.attempts.get(fence=1).outcome == "timeout"


def test_the_time_in_the_queue_is_neither_start_up_nor_duration(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = queued(node)
    pass_by(job, LONG_S)
    node.sync(node.say(order, "starting"))
    node.run(order, START, step(1))
    prediction = Attempt.objects.get().prediction
    node.end(order, "succeeded", step(10), result(startup_s=0.0, train_s=0.0, runtime_s=0.0))
    attempt = Attempt.objects.get()
    claim = attempt.claims.get()
    assert claim.queued_at is not None
    assert claim.began_at is not None
    assert (claim.began_at - claim.queued_at).total_seconds() == pytest.approx(LONG_S, rel=0.01)
    assert attempt.queued_s == pytest.approx(LONG_S, rel=0.01)
    learnt = Execution.objects.get(attempt_id=attempt.pk)
    assert learnt.startup_s is not None
    assert learnt.runtime_s is not None
    assert max(learnt.startup_s, learnt.runtime_s) < LONG_S / 10
    assert startup_s([attempt], database_now()) < LONG_S / 10
    assert prediction is None or prediction["startup_s"] < LONG_S / 10
    job.refresh_from_db()
    assert job.waited_s > LONG_S / 2


@pytest.mark.slow
@pytest.mark.parametrize("seen", ["running", "ended"])
def test_a_beginning_that_an_absent_agent_did_not_see_is_told_by_the_trainers_clock(
    node: FakeNode, seen: str
) -> None:
    job = world.placed_job(node)
    order = queued(node)
    pass_by(job, LONG_S)
    figures = result(startup_s=5.0, train_s=1990.0, runtime_s=2000.0)
    if seen == "running":
        node.run(order, START, step(1))
    node.begun.add(order.claim)
    node.end(order, "succeeded", START, step(10), figures)
    assert world.state_of(job) == JobState.SUCCEEDED
    attempt = Attempt.objects.get()
    learnt = Execution.objects.get(attempt_id=attempt.pk)
    assert attempt.queued_s == pytest.approx(LONG_S - 2000, rel=0.01)
    assert learnt.runtime_s == pytest.approx(2000, rel=0.01)
    assert learnt.startup_s == pytest.approx(10, abs=5)


@pytest.mark.slow
def test_a_time_limit_counts_from_the_beginning(node: FakeNode) -> None:
    job = world.placed_job(node, max_run_s=3600)
    order = queued(node)
    pass_by(job, LONG_S)
    tick()
    assert world.state_of(job) == JobState.ASSIGNED
    node.sync(node.say(order, "starting"))
    node.run(order, START, step(1))
    tick()
    assert world.state_of(job) == JobState.RUNNING
    left = Attempt.objects.get().stops_at
    assert left is not None
    assert 3000 < (left - database_now()).total_seconds() <= 3600
    Attempt.objects.update(stops_at=database_now())
    tick()
    assert world.state_of(job) == JobState.STOPPING


def test_a_job_is_cancelled_while_it_is_queued_and_teaches_nothing(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = queued(node)
    pass_by(job, LONG_S)
    cancel_job(job=job, actor=job.owner, now=database_now())
    assert node.sync(node.say(order, "queued")).claims[0].stop_for == "cancel"
    node.sync(node.say(order, "delivering"))
    node.end(order, "stopped")
    assert world.state_of(job) == JobState.CANCELLED
    assert not Execution.objects.filter(attempt_id__isnull=False).exists()


def test_a_node_that_is_lost_while_a_claim_is_queued_teaches_nothing(node: FakeNode) -> None:
    job = world.placed_job(node)
    queued(node)
    world.silence(node, 1000)
    world.fake_node()
    tick()
    assert job.attempts.get(fence=1).outcome == "lost"
    assert not Execution.objects.filter(attempt_id__isnull=False).exists()


def test_a_claim_that_began_is_not_queued_again(node: FakeNode) -> None:
    world.placed_job(node)
    order = queued(node)
    node.sync(node.say(order, "starting"))
    assert node.sync(node.say(order, "queued")).claims[0].error == "bad_report"
    assert Claim.objects.get().phase == "starting"


def test_a_node_is_told_what_a_training_is_given() -> None:
    node = world.fake_node(slots=4)
    job = world.placed_job(node, max_run_s=7200)
    spec = next(order.spec for order in node.sync().claims if order.spec is not None)
    given, share = spec.resources, len(spec.gpus)
    assert (given.flavor, given.nodes, given.gpus_per_node) == ("", 1, share)
    assert (given.cores, given.memory_bytes) == (5 * share // 4, (8 << 30) * share)
    assert given.run_s is not None
    assert 0 < given.run_s <= 7200
    assert given.grace_s > 0
    assert job.attempts.get().queued_s == 0.0
