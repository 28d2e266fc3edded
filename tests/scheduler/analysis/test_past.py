"""Nodes, rules and options of the past, as the simulator plays them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.accounts.models import Team
from portal.clock import database_now
from portal.events.models import Event
from portal.events.types import EventType
from scheduler.core.limits import Quota
from scheduler.models import Attempt, Job, Node
from scheduler.selectors.past.nodes import past_nodes
from scheduler.selectors.past.options import past_options
from scheduler.selectors.past.rules import past_limits, past_policies, past_windows
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.services.policy import choose_policy
from scheduler.services.quotas import QuotaValues, set_quotas
from scheduler.services.windows import WindowValues, add_window
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.scheduler.analysis.past import ended_job

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
HOUR = timedelta(hours=1)
T = EventType


def events(node: FakeNode, *kinds: tuple[EventType, float]) -> None:
    """A node that has been there for long, with what happened to it: kind and hours after the beginning."""
    begin = database_now() - 10 * HOUR
    Node.objects.filter(pk=node.node_id).update(enrolled_at=begin - 100 * HOUR)
    Event.objects.filter(subject=node.node_id).delete()
    for kind, hours in kinds:
        Event.objects.create(subject=node.node_id, type=kind, at=begin + hours * HOUR)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((), []),
        ([(T.NODE_LOST, 1), (T.NODE_BACK, 2)], [(1, 0, True), (2, 1, False)]),
        ([(T.NODE_LOST, -2), (T.NODE_BACK, -1), (T.NODE_DRAINING, 1), (T.NODE_DRAINED, 2)], [(1, 0, False)]),
        ([(T.NODE_DRAINING, -1), (T.NODE_RESUMED, 3)], [(0, 0, False), (3, 1, False)]),
        ([(T.NODE_LOST, 1), (T.NODE_RESUMED, 2), (T.NODE_BACK, 3)], [(1, 0, True), (3, 1, False)]),
        (
            [(T.NODE_BLOCKED, 1), (T.NODE_RESUMED, 2), (T.NODE_REMOVED, 3)],
            [(1, 0, False), (2, 1, False), (3, 0, True)],
        ),
        ([(T.NODE_DECLINED, 1), (T.NODE_PRICE_CHANGED, 2)], []),
    ],
)
def test_nodes_come_fail_and_go(
    kinds: list[tuple[EventType, float]], expected: list[tuple[float, int, bool]]
) -> None:
    node = world.fake_node(slots=2)
    events(node, *kinds)
    now = database_now()
    found = past_nodes(now - 10 * HOUR, now)
    assert [(pool.gpu_model, pool.names) for pool in found.cluster.pools] == [("cpu", (node.node_id,))]
    changes = [(round(one.t_s / 3600, 2), one.available, one.stops) for one in found.capacity]
    assert changes == expected


def test_a_node_that_came_later_is_not_there_before() -> None:
    node, now = world.fake_node(), database_now()
    Node.objects.update(enrolled_at=now - HOUR)
    Event.objects.all().delete()
    changes = [(one.where, round(one.t_s), one.available) for one in past_nodes(now - 2 * HOUR, now).capacity]
    assert changes == [(node.node_id, 0, 0), (node.node_id, 3600, 1)]
    assert past_nodes(now - 3 * HOUR, now - 2 * HOUR).cluster.pools == ()


def test_a_drain_by_an_administrator_is_found(node: FakeNode) -> None:
    begin, admin, row = database_now(), world.admin(), Node.objects.get()
    drain_node(node=row, actor=admin, reason="", move_jobs=False, now=begin + HOUR)
    resume_node(node=row, actor=admin, reason="", now=begin + 2 * HOUR)
    changes = [(one.t_s, one.available) for one in past_nodes(begin, begin + 3 * HOUR).capacity]
    assert changes == [(3600.0, 0), (7200.0, 1)]


def test_policies_quotas_and_windows_of_the_time(node: FakeNode) -> None:
    begin, admin = database_now(), world.admin()
    team = Team.objects.create(name="one")
    choose_policy(name="sjf", actor=admin, reason="", now=begin + HOUR)
    assert [(at, one.name) for at, one in past_policies(begin, begin + 2 * HOUR)] == [
        (0.0, "easy"), (3600.0, "sjf"),
    ]  # fmt: skip
    assert [one.name for _, one in past_policies(begin + 2 * HOUR, begin + 3 * HOUR)] == ["sjf"]
    for hours, gpus in ((1, 2), (2, 3)):
        quota = QuotaValues(gpu_model="cpu", guaranteed=gpus, borrow_limit=None, lending_limit=None)
        set_quotas(team=team, quotas=[quota], actor=admin, now=begin + hours * HOUR)
    limits, changes = past_limits(begin, begin + 3 * HOUR, {admin.pk})
    assert not limits
    guaranteed = [(one.at, one.limits.quotas if one.limits else ()) for one in changes]
    assert guaranteed == [
        (at, (Quota(team=f"team-{team.pk}", gpu_model="cpu", guaranteed=gpus),))
        for at, gpus in ((3600.0, 2), (7200.0, 3))
    ]
    closed = WindowValues(begins_at=begin + HOUR, ends_at=begin + 2 * HOUR, nodes=[node.node_id])
    add_window(values=closed, actor=admin, now=begin)
    [window] = past_windows(begin, begin + 3 * HOUR, {node.node_id: (node.node_id,)})
    assert (window.closes_at, window.ends_at) == (3600.0 - 120.0, 7200.0)
    assert window.nodes == {node.node_id}


def again(job: Job, attempt: Attempt, **values: object) -> Attempt:
    """One more attempt like this one."""
    copied = {name: getattr(attempt, name) for name in ("option", "created_at", "running_at", "ended_at")}
    return Attempt.objects.create(job=job, fence=attempt.fence + 1, **{**copied, **values})


def test_a_job_is_measured_by_the_promises_of_its_attempts(node: FakeNode) -> None:
    job = ended_job(node, ran_s=100.0)
    attempt = job.attempts.get()
    promised_s = attempt.promised.duration_s.value
    attempt.created_at = attempt.running_at or attempt.created_at
    attempt.save()
    known = past_options(job, [attempt])
    assert known is not None
    assert known.slower == pytest.approx(100.0 / promised_s)
    assert known.options[0].duration_s.value == promised_s
    assert known.promised_s(known.options[0]) == promised_s


def test_what_a_lost_node_cost_is_no_part_of_what_a_job_takes(node: FakeNode) -> None:
    job = ended_job(node, ran_s=100.0)
    job.total_steps = 10
    first = job.attempts.get()
    first.created_at, first.outcome = first.running_at or first.created_at, "lost"
    second = again(job, first, outcome="succeeded", resume_step=5)
    known = past_options(job, [first, second])
    assert known is not None
    restart_s = first.promised.startup_s
    half_s = first.promised.duration_s.value / 2
    assert known.slower == pytest.approx(max(0.0, 100.0 - restart_s) / half_s, rel=0.2)
