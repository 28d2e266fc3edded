"""GPUs that are kept for a job are given up when what it may have changes before it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portal.accounts.models import Team, User
from portal.clock import database_now
from scheduler.core.types import Topology
from scheduler.errors import CannotPlace
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Attempt, Job, PendingStart
from scheduler.services.jobs.change import change_job
from scheduler.services.jobs.priorities import hold_job, release_job
from scheduler.services.jobs.starts import require_as_decided, start_attempt
from scheduler.services.quotas import LimitValues, QuotaValues, put_quota, set_limit
from scheduler.states import WaitState
from tests.harness import world
from tests.harness.invariants import assert_sound
from tests.harness.preempting import preempting

pytestmark = pytest.mark.django_db
NUMA = 3


@pytest.fixture(autouse=True)
def _least_attained(settings: Any) -> None:
    settings.POLICY = "las"


def held(taker: Job, admin: User) -> None:
    hold_job(job=taker, actor=admin, now=database_now(), note="Its data is being checked.")


def limited(taker: Job, admin: User) -> None:
    set_limit(user=taker.owner, values=LimitValues(gpus=0), actor=admin, now=database_now())


def all_limited(taker: Job, admin: User) -> None:
    set_limit(user=None, values=LimitValues(running_jobs=0), actor=admin, now=database_now())


def guaranteed_to_others(taker: Job, admin: User) -> None:
    values = QuotaValues(guaranteed=1, lending_limit=0)
    put_quota(team=Team.objects.create(name="others"), values=values, actor=admin, now=database_now())


@pytest.mark.parametrize(
    ("act", "waits", "why"),
    [
        (held, WaitState.HELD, "An administrator holds the job"),
        (limited, WaitState.QUOTA_USER, "Its owner's limits were changed"),
        (all_limited, WaitState.QUOTA_USER, "Its owner's limits were changed"),
        (guaranteed_to_others, WaitState.QUOTA_TEAM, "The quota of a team was changed"),
    ],
)
def test_a_job_does_not_start_any_more_although_gpus_were_being_freed_for_it(
    act: Callable[[Job, User], None], waits: WaitState, why: str
) -> None:
    turn, admin = preempting(), world.admin()
    act(turn.taker, admin)
    turn.node.end(turn.order, "stopped")
    tick()
    assert not PendingStart.objects.exists()
    assert turn.taker.events.get(type="job.reservation_over").reason.startswith(why)
    assert (world.state_of(turn.taker), turn.taker.wait_code) == ("queued", waits)
    assert_sound()


def test_the_limits_of_others_leave_it_alone_and_a_released_job_waits_its_turn_again() -> None:
    turn, admin = preempting(), world.admin()
    limited(world.job(), admin)
    assert PendingStart.objects.get().job == turn.taker
    held(turn.taker, admin)
    release_job(job=turn.taker, actor=admin, now=database_now())
    turn.node.end(turn.order, "stopped")
    tick()
    assert world.state_of(turn.taker) == "assigned"


def test_a_job_that_was_held_after_the_decision_does_not_start() -> None:
    """An administrator was quicker than the tick that carries it out."""
    world.fake_node()
    job = world.job()
    held(job, world.admin())
    job.refresh_from_db()
    assert job.promised is not None
    with pytest.raises(CannotPlace, match="holds"):
        require_as_decided(job, job.promised)


def test_a_level_that_is_required_meanwhile_holds_for_the_start() -> None:
    turn = preempting(slots=4, gpus=2)
    world.declare_sites(turn.node, 4)
    close = {"topology": Topology.GUARANTEED, "topology_level": NUMA}
    change_job(job=turn.taker, actor=turn.taker.owner, now=database_now(), **close)
    assert not PendingStart.objects.exists()
    turn.node.end(turn.order, "stopped")
    tick()
    started = Attempt.objects.get(job=turn.taker)
    assert (started.link_level, started.asked_level) == (NUMA, NUMA)
    assert_sound()


def test_no_start_falls_below_a_level_that_is_required_by_now() -> None:
    """The decision was made before; its GPUs lie at two NUMA nodes."""
    node = world.fake_node(slots=4)
    world.declare_sites(node, 4)
    job = world.job(params={"number_gpus": 2}, topology=Topology.GUARANTEED, topology_level=NUMA)
    assert job.promised is not None
    apart = [(node.node_id, index) for index in (1, 2)]
    with pytest.raises(CannotPlace, match="closer"):
        start_attempt(job=job, option=job.promised, gpus=apart, now=database_now())
    assert not Allocation.objects.exists()
