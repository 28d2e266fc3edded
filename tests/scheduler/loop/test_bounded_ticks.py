"""A tick does a bounded amount of work, leases first.

Hints that arrive meanwhile cause one more tick.
"""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal import hints as sending
from portal.clock import database_now
from scheduler import hints
from scheduler.core.handovers import Handover
from scheduler.core.types import Plan, Start
from scheduler.loop import leadership, leases, snapshot
from scheduler.loop.apply import apply
from scheduler.loop.pending import settle_pending
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Epoch, Job, Node, PendingGpu, PendingStart
from scheduler.rare_collections import rare_collections
from scheduler.services.jobs.hand_over import hand_over
from scheduler.services.jobs.starts import gpus_now, start_attempts
from scheduler.states import JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.harness.invariants import assert_sound
from tests.harness.preempting import running

pytestmark = pytest.mark.django_db


def wait_in_line(jobs: int) -> None:
    owner = world.user()
    file = world.data_file(owner)
    for _ in range(jobs):
        world.job(owner, training_file=file)


def test_leases_are_looked_at_before_every_few_starts(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CHANGES_PER_TICK = 4
    world.fake_node(slots=10)
    dead = world.fake_node(slots=1)
    wait_in_line(10)
    started_at_looks, look = [], leases.last_heard

    def noted(*args: Any) -> Any:
        started_at_looks.append(Attempt.objects.count())
        return look(*args)

    monkeypatch.setattr(leases, "last_heard", noted)
    assert tick().started == 4
    world.silence(dead, 100)
    assert tick().started == 4
    assert Node.objects.get(pk=dead.node_id).state == NodeState.LOST
    while tick().started:
        pass
    assert started_at_looks[:3] == [0, 4, 8]
    assert Job.objects.filter(state=JobState.ASSIGNED).count() == 10


def test_a_slow_database_bounds_a_tick_by_time(settings: Any) -> None:
    settings.CHANGES_FOR_S = 0.0
    node = world.fake_node()
    wait_in_line(2)
    assert tick().started == 0
    settings.CHANGES_FOR_S = 60.0
    assert tick().started == 2
    assert len(node.sync().claims) == 2


def test_what_is_overdue_is_ended_a_few_at_a_time_and_all_of_it(settings: Any, node: FakeNode) -> None:
    settings.CHANGES_PER_TICK = 1
    wait_in_line(2)
    while tick().started:
        pass
    for job in Job.objects.all():
        world.age_state(job, 61)
    for left in (1, 0):
        tick()
        assert Attempt.objects.filter(fence=1, ended_at__isnull=True).count() == left


def test_a_dead_rack_is_lost_a_few_nodes_at_a_time_and_gets_no_starts_meanwhile(settings: Any) -> None:
    rack = [world.fake_node(slots=2) for _ in range(8)]
    wait_in_line(len(rack))
    tick()
    alive = world.fake_node(slots=1)
    wait_in_line(2)
    settings.CHANGES_PER_TICK = 4
    settings.NODE_SUSPECT_S = 2 * settings.NODE_LOST_S  # even if someone chose so
    for node in rack:
        world.silence(node, 100)
    lost, on_the_rack = Node.objects.filter(state=NodeState.LOST), [node.node_id for node in rack]
    started, before = 0, 0
    while lost.count() < len(rack):
        started += tick().started
        assert before < lost.count() <= before + 4
        before = lost.count()
    assert started == 1
    assert not Attempt.objects.filter(ended_at__isnull=True, claims__node__in=on_the_rack).exists()
    assert Attempt.objects.get(ended_at__isnull=True).claims.get().node_id == alive.node_id
    assert Job.objects.filter(state=JobState.QUEUED).count() == len(rack) + 1


def test_hints_of_before_a_tick_are_that_tick(node: FakeNode) -> None:
    """Hints from before a tick are answered by that tick.

    Each hint names the newest tick at the time of its request: a later tick has seen everything
    since.
    """
    tick()
    newest, ticks = hints.newest_tick(), Epoch.objects.get().ticks
    for _ in range(20):
        tick(after=newest)
    assert Epoch.objects.get().ticks == ticks + 1
    tick(after=hints.newest_tick())
    tick()
    assert Epoch.objects.get().ticks == ticks + 3


@pytest.mark.django_db(transaction=True)
def test_a_hint_says_after_which_tick_it_came(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, int]] = []
    monkeypatch.setattr(sending, "no_try_before", 0.0)
    monkeypatch.setattr(sending.current_app, "connection_for_write", lambda **_: nullcontext())
    monkeypatch.setattr(sending.current_app, "send_task", lambda name, kwargs, **_: sent.append(kwargs))
    tick()
    world.job()
    assert {"after": Epoch.objects.get().number} in sent


def test_garbage_is_sought_seldom_in_a_tick_and_as_before_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the tick fails."""
    before, within = gc.get_threshold(), list[int]()

    def fails(*_: object) -> None:
        within.append(gc.get_threshold()[0])
        raise ZeroDivisionError

    monkeypatch.setattr("scheduler.loop.tick.decide", fails)
    with pytest.raises(ZeroDivisionError):
        tick()
    assert within[0] > before[0]
    assert gc.get_threshold() == before


def test_blocks_of_several_threads_leave_the_search_for_garbage_as_it_was() -> None:
    """The first one in may be the first one out."""
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() != before
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_all_gpus_of_a_job_that_is_stopped_are_handed_over_in_one_tick(settings: Any) -> None:
    """The next one sees them neither as free nor as held by a job that could be stopped."""
    settings.POLICY, settings.CHANGES_PER_TICK = "las", 1
    node = world.fake_node(slots=5)
    first, second = (running(node, number_gpus=gpus)[0] for gpus in (3, 2))
    waiting = [world.job(params={"number_gpus": 1, "max_steps": 10_000}) for _ in range(5)]
    for victims, takers in (({first.pk}, 3), ({first.pk, second.pk}, 5)):
        tick()
        assert {attempt.job_id for attempt in Attempt.objects.filter(stopped_for__isnull=False)} == victims
        assert PendingGpu.objects.count() == takers
    assert {*PendingStart.objects.values_list("job", flat=True)} == {job.pk for job in waiting}


@pytest.mark.parametrize(("victims", "takers"), [(1, 1), (4, 1), (1, 4)])
def test_handovers_take_a_constant_number_of_queries(
    settings: Any, monkeypatch: pytest.MonkeyPatch, victims: int, takers: int
) -> None:
    """However many jobs are stopped for one, how many GPUs it takes, and how many take those of one."""
    settings.POLICY = "las"
    node = world.fake_node(slots=4)
    for _ in range(victims):
        running(node, number_gpus=4 // victims)
    for _ in range(takers):
        world.job(params={"number_gpus": 4 // takers, "max_steps": 10_000})
    queries: list[str] = []

    def counted(**values: Any) -> list[Handover]:
        with CaptureQueriesContext(connection) as captured:
            done = hand_over(**values)
        queries.extend(query["sql"] for query in captured)
        return done

    monkeypatch.setattr("scheduler.loop.apply.hand_over", counted)
    tick()
    assert (PendingGpu.objects.count(), PendingStart.objects.count()) == (4, takers)
    assert Attempt.objects.filter(stopped_for__isnull=False).count() == victims
    assert len(queries) == 12, queries


def test_handovers_of_one_tick_are_carried_out_together_unless_one_breaks(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.POLICY, together = "las", list[int]()
    for _ in range(3):
        running(world.fake_node(slots=1), number_gpus=1)
    wait_in_line(3)
    broken = Job.objects.filter(state=JobState.QUEUED).order_by("submitted_at")[1]

    def breaks(*, changes: list[Handover], **values: Any) -> list[Handover]:
        together.append(len(changes))
        done = hand_over(changes=changes, **values)
        if any(change.takes.job == broken.pk for change in changes):
            raise ZeroDivisionError
        return done

    monkeypatch.setattr("scheduler.loop.apply.hand_over", breaks)
    tick()
    assert together == [3, 1, 1, 1]
    assert PendingStart.objects.count() == 2
    assert not PendingStart.objects.filter(job=broken).exists()
    assert [record.job for record in caplog.records if record.levelname == "ERROR"] == [broken.pk]
    monkeypatch.setattr("scheduler.loop.apply.hand_over", hand_over)
    tick()
    assert PendingStart.objects.count() == 3
    assert_sound()


@pytest.mark.parametrize("jobs", [1, 4])
def test_starts_on_free_gpus_take_a_constant_number_of_queries(
    monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    for _ in range(jobs):
        world.fake_node(slots=2)
        world.job(params={"number_gpus": 2}, max_run_s=100_000)
    queries: list[str] = []

    def counted(**values: Any) -> Any:
        with CaptureQueriesContext(connection) as captured:
            done = start_attempts(**values)
        queries.extend(query["sql"] for query in captured)
        return done

    monkeypatch.setattr("scheduler.loop.apply.start_attempts", counted)
    assert tick().started == jobs
    assert len(queries) == 19, queries
    assert_sound()


@pytest.mark.parametrize("jobs", [1, 4])
def test_starts_on_kept_gpus_take_a_constant_number_of_queries(settings: Any, jobs: int) -> None:
    settings.POLICY = "las"
    node = world.fake_node(slots=jobs)
    orders = [running(node, number_gpus=1)[1] for _ in range(jobs)]
    for _ in range(jobs):
        world.job(params={"number_gpus": 1, "max_steps": 10_000})
    tick()
    for order in orders:
        node.end(order, "stopped")
    epoch = leadership.acquire()
    assert epoch is not None
    with CaptureQueriesContext(connection) as captured:
        assert settle_pending(epoch, database_now()) == jobs
    assert len(captured) == 41, captured.captured_queries
    assert_sound()


def test_a_start_that_breaks_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Starts of one tick are one transaction, unless one of them cannot be."""
    world.fake_node(slots=3)
    wait_in_line(3)
    broken = Job.objects.order_by("submitted_at")[1]

    def breaks(job: Job, now: Any) -> None:
        if job == broken:
            raise ZeroDivisionError

    monkeypatch.setattr("scheduler.services.jobs.starts.stops_at", breaks)
    assert tick().started == 2
    assert [record.job for record in caplog.records if record.levelname == "ERROR"] == [broken.pk]
    assert world.state_of(broken) == "queued"
    assert_sound()


@pytest.mark.parametrize("seen", [True, False])
def test_of_starts_that_begin_together_those_are_left_out_that_cannot(
    monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """I5: on a GPU of another job, and on one that two are given; what rows hide, a constraint shows."""
    node = world.fake_node(slots=3)
    world.placed_job(node)
    wait_in_line(3)
    jobs = list(Job.objects.filter(state=JobState.QUEUED))
    state, epoch = snapshot.take_snapshot({}, database_now()), leadership.acquire()
    assert epoch is not None

    def as_if_free(gpus: Any) -> Any:
        return {at: gpu._replace(holder=None) for at, gpu in gpus_now(gpus).items()}

    if not seen:
        monkeypatch.setattr("scheduler.services.jobs.starts.gpus_now", as_if_free)
    option = next(one for one in state.jobs if one.id == jobs[0].pk).options[0]
    places = zip(jobs, (0, 1, 1), strict=True)
    plan = Plan(tuple(Start(job.pk, option, ((node.node_id, place),)) for job, place in places))
    assert apply(epoch, state, plan, "fifo", database_now()).started == 1
    assert [world.state_of(job) for job in jobs] == ["queued", "assigned", "queued"]
    assert_sound()
