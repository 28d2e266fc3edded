"""Absences of the portal, of its proxy and of nodes (F12, L2).

Time follows a clock of the test's own.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal import clock
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Job, Node
from scheduler.services.web_beat import note_web_beat
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from tests.harness.sampling import mostly_on_demand

pytestmark = pytest.mark.django_db
STEP_S = 10


class Time:
    """Time that passes in steps.

    In each step the web server beats, nodes are heard and ticks run, unless they are away.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = clock.read()
        monkeypatch.setattr(clock, "read", lambda: self.now)

    def passes(
        self, seconds: float, *heard: FakeNode, web: bool = True, ticks: int = 1, until_lost: bool = False
    ) -> float:
        """Let time pass and return the seconds that passed.

        With `until_lost` the time ends when the first node is lost.
        """
        for passed in range(STEP_S, round(seconds) + 1, STEP_S):
            self.now += timedelta(seconds=STEP_S)
            if web:
                note_web_beat(now=self.now)
            nodes = Node.objects.filter(pk__in=[node.node_id for node in heard])
            nodes.update(last_seen_at=self.now)
            for _ in range(ticks):
                tick()
            if until_lost and lost():
                return passed
        return seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def lost() -> set[str]:
    return set(Node.objects.filter(state=NodeState.LOST).values_list("pk", flat=True))


def running(node: FakeNode) -> Job:
    job = world.placed_job(node)
    node.run(node.take_up(), step(1))
    assert world.state_of(job) == JobState.RUNNING
    return job


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("away", "seconds"),
    [
        ("web", 99),
        ("web and loop", 600),
        pytest.param("proxy", 600, marks=pytest.mark.slow),
        pytest.param("web", 84, marks=pytest.mark.slow),
        pytest.param("proxy", 99, marks=pytest.mark.slow),
    ],
)
def test_no_node_is_lost_by_an_absence_of_the_portal_or_the_proxy(
    time: Time, away: str, seconds: float
) -> None:
    """No node is lost by an absence of the portal or the proxy.

    The nodes come back one by one: agents wait up to a third of the lease, and may have just timed
    out.
    """
    nodes = [world.fake_node(slots=1) for _ in range(6)]
    job = running(nodes[0])
    *others, dead = nodes
    time.passes(40, *nodes, ticks=2)
    time.passes(seconds, web=away == "proxy", ticks=0 if "loop" in away else 1)
    for back in range(1, len(nodes)):
        others[back - 1].sync()
        time.passes(STEP_S, *others[:back])
    assert not lost()
    passed = len(others) * STEP_S
    assert passed + time.passes(200, *others, until_lost=True) <= 100
    assert lost() == {dead.node_id}, "who does not come back"
    assert not Attempt.objects.filter(ended_at__isnull=False).exists()
    assert world.state_of(job) == JobState.RUNNING


@pytest.mark.one_database
def test_a_single_node_is_not_lost_by_an_absence_of_the_web_server(time: Time) -> None:
    node = world.fake_node()
    job = running(node)
    time.passes(100, node)
    time.passes(99, web=False)
    time.passes(50)
    time.passes(STEP_S, node)
    assert not lost()
    assert world.state_of(job) == JobState.RUNNING
    assert time.passes(200, until_lost=True) <= 100, "silent while the web server serves"
    assert world.state_of(job) == JobState.QUEUED


@pytest.mark.one_database
@pytest.mark.parametrize("nodes", mostly_on_demand([1, 2, 6], [6]))
def test_a_dead_node_is_lost_within_its_lease(time: Time, nodes: int) -> None:
    """L2"""
    dead, *others = [world.fake_node(slots=1) for _ in range(nodes)]
    job = running(dead)
    time.passes(100, dead, *others)
    assert 90 <= time.passes(200, *others, ticks=2, until_lost=True) <= 100
    assert lost() == {dead.node_id}
    assert job.attempts.get(fence=1).outcome == "lost"


def test_a_node_that_joins_does_not_renew_the_lease_of_a_dead_one(time: Time) -> None:
    dead = world.fake_node()
    time.passes(100, dead)
    time.passes(60)
    other = world.fake_node()
    assert time.passes(100, other, until_lost=True) <= 40


@pytest.mark.one_database
@pytest.mark.parametrize(("there", "away"), [(20, 40), (40, 50), (60, 60)])
def test_a_dead_node_is_lost_while_others_come_and_go(time: Time, there: int, away: int) -> None:
    """Each return after a gap gave it a whole lease anew."""
    dead, *others = [world.fake_node(slots=1) for _ in range(3)]
    time.passes(100, dead, *others)
    passed = 0.0
    for turn in range(8):
        passed += time.passes(there, others[turn % 2], until_lost=True)
        if lost():
            break
        passed += time.passes(away, until_lost=True)
        if lost():
            break
    assert lost() == {dead.node_id}
    assert passed <= 240


@pytest.mark.one_database
def test_only_the_time_in_which_the_web_server_was_away_is_added_to_a_lease(time: Time) -> None:
    node, other = [world.fake_node(slots=1) for _ in range(2)]
    time.passes(100, node, other)
    time.passes(70, other)
    time.passes(600, web=False)
    assert time.passes(200, other, until_lost=True) <= 50
    assert lost() == {node.node_id}


@pytest.mark.one_database
def test_a_jump_of_the_clock_loses_nobody(time: Time) -> None:
    """F14"""
    nodes = [world.fake_node(slots=1) for _ in range(2)]
    job = running(nodes[0])
    time.passes(100, *nodes)
    for hours in (1, -2):
        time.now += timedelta(hours=hours)
        tick()
        time.passes(STEP_S, nodes[0])
        time.passes(STEP_S, *nodes)
        assert not lost()
    assert world.state_of(job) == JobState.RUNNING
    assert 90 <= time.passes(200, nodes[0], until_lost=True) <= 100
    assert lost() == {nodes[1].node_id}


def test_a_start_or_stop_that_nobody_could_report_is_not_overdue(time: Time) -> None:
    node = world.fake_node()
    job = world.placed_job(node)
    time.passes(20, node)
    time.passes(99, web=False)
    time.passes(40)
    node.run(node.take_up(), step(1))
    assert world.state_of(job) == JobState.RUNNING
    assert Node.objects.get().declines == []
