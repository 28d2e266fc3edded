"""I15: the acts of people are stamped with the database's clock.

The clocks of web hosts may be wrong by minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job, Node
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(db: None) -> FakeNode:
    return world.fake_node()


@pytest.fixture(params=[-90, 90], ids=["90 s behind", "90 s ahead"])
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web host's own clock is wrong."""
    right, by = timezone.now, timedelta(seconds=request.param)
    monkeypatch.setattr(timezone, "now", lambda: right() + by)


def by_rest(job: Job, verb: str) -> None:
    answer = token_client(job.owner).post(f"/api/jobs/{job.pk}/{verb}/")
    assert answer.status_code == 200, answer.content


def by_page(job: Job, verb: str) -> None:
    browser = Client()
    browser.force_login(job.owner)
    assert browser.post(f"/jobs/{job.pk}/{verb}/").status_code == 302


@pytest.mark.parametrize("say", [by_rest, by_page])
def test_a_web_host_with_a_wrong_clock_makes_no_stop_overdue_and_hides_none(
    node: FakeNode, wrong: None, say: Callable[[Job, str], None]
) -> None:
    job = world.placed_job(node)
    node.run(node.take_up(), step(1))
    say(job, "pause")
    assert world.state_of(job) == JobState.STOPPING
    assert abs(job.state_since - database_now()) < timedelta(seconds=30)
    tick()
    assert world.state_of(job) == JobState.STOPPING
    assert Node.objects.get().state == NodeState.READY
    world.age_state(job, 61)
    tick()
    assert world.state_of(job) == JobState.PAUSED
    assert Node.objects.get().state == NodeState.BLOCKED, "it did not confirm the stop in time"


def test_a_drain_is_stamped_with_the_database_s_clock(node: FakeNode, wrong: None) -> None:
    browser = Client()
    browser.force_login(world.admin())
    request = {"reason": "New fans"}
    assert browser.post(f"/nodes/{node.node_id}/drain/", request).status_code == 302
    row = Node.objects.get()
    assert row.state == NodeState.DRAINING
    assert abs(row.state_since - database_now()) < timedelta(seconds=30)


def test_all_clocks_are_replaced_in_one_place(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    tomorrow = database_now() + timedelta(days=1)
    monkeypatch.setattr("portal.clock.read", lambda: tomorrow)
    node.sync()
    job = world.placed_job(node)
    by_rest(job, "cancel")
    reported: list[datetime | None] = [
        job.submitted_at, job.attempts.get().created_at, Node.objects.get().last_seen_at,
        *job.events.values_list("at", flat=True),
    ]  # fmt: skip
    assert set(reported) == {tomorrow}
