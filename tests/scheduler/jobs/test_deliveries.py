"""Trainings that have ended and bring their files, which may wait for a disk."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Allocation, FairShare, Job, Node
from scheduler.services.jobs.verbs import pause_job
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result
from trainer.protocol import ClaimOrder

pytestmark = pytest.mark.django_db
START = {"kind": "start", "body": {"steps_total": 10, "tokens_total": 100, "startup_s": 1.0}}


@pytest.fixture
def node() -> FakeNode:
    return world.fake_node(slots=1)


@pytest.fixture
def job(node: FakeNode) -> Job:
    return world.placed_job(node)


@pytest.fixture
def order(node: FakeNode, job: Job) -> ClaimOrder:
    """Of a claim whose training has just ended."""
    given = node.take_up()
    node.run(given, START)
    node.sync(node.say(given, "delivering", result()))
    return given


def test_gpus_are_free_once_the_training_has_ended(node: FakeNode, job: Job, order: ClaimOrder) -> None:
    assert world.open_allocations() == 0
    assert world.state_of(job) == JobState.RUNNING
    heir = world.job()
    assert tick().started == 1
    assert world.state_of(heir) == JobState.ASSIGNED
    node.end(order, "succeeded")
    assert world.state_of(job) == JobState.SUCCEEDED
    assert world.open_allocations() == 1
    assert Allocation.objects.get(claim=order.claim).released_at is not None
    used = FairShare.objects.get(user=job.owner).used_gpu_s
    attempt = job.attempts.get()
    assert 0 < used < attempt.lasted_s(database_now())


def test_a_short_training_may_be_told_at_once(node: FakeNode, job: Job) -> None:
    order = node.take_up()
    node.sync(node.say(order, "delivering", START, result()))
    assert world.state_of(job) == JobState.RUNNING
    node.end(order, "succeeded")
    assert world.state_of(job) == JobState.SUCCEEDED


def test_one_that_never_trained_is_not_shown_as_running(node: FakeNode, job: Job) -> None:
    order = node.take_up()
    node.sync(node.say(order, "delivering"))
    assert world.state_of(job) == JobState.STARTING
    assert world.open_allocations() == 0
    node.end(order, "error", reason="there is no such model")
    assert world.state_of(job) == JobState.FAILED


def test_a_pause_while_files_are_on_their_way_is_waited_for(
    node: FakeNode, job: Job, order: ClaimOrder
) -> None:
    """The node runs nothing that anybody would have to confirm."""
    job.refresh_from_db()
    pause_job(job=job, actor=job.owner, now=database_now())
    world.age_state(job, settings.STOP_GRACE_S + 1000)
    tick()
    assert world.state_of(job) == JobState.STOPPING
    assert Node.objects.get().state == NodeState.READY
    node.end(order, "succeeded")
    assert world.state_of(job) == JobState.SUCCEEDED


def test_a_node_that_is_lost_with_the_files_costs_another_attempt(
    node: FakeNode, job: Job, order: ClaimOrder
) -> None:
    world.silence(node, settings.NODE_LOST_S + 1)
    tick()
    assert world.state_of(job) == JobState.QUEUED
    assert job.attempts.get().outcome == "lost"
    node.sync(node.say(order, "delivering"))
    assert Node.objects.get().state == NodeState.READY


def test_the_page_says_where_the_files_are(job: Job, order: ClaimOrder, client: Client) -> None:
    client.force_login(job.owner)
    page = client.get(f"/jobs/{job.pk}/live/").content.decode()
    assert "Its training has ended and left its GPUs." in page
