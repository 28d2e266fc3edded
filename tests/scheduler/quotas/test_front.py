"""An administrator moves a job to the front of its class, whatever the policy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.accounts.errors import NotAllowed
from portal.accounts.models import AuditEntry
from portal.clock import database_now
from scheduler.core.limits import Limits, Quota
from scheduler.core.policies import LIVE, POLICIES
from scheduler.core.quotas import admission
from scheduler.core.types import ClusterState, Preempt, Start
from scheduler.errors import IllegalTransition
from scheduler.loop.tick import tick
from scheduler.services.jobs.priorities import move_back, move_to_front
from scheduler.states import PriorityClass
from tests.harness import world
from tests.harness.invariants import assert_sound
from tests.scheduler.core.clusters import job, node, option, running


@pytest.mark.parametrize("policy", LIVE)
def test_it_goes_before_its_class_and_after_higher_ones_under_every_policy(policy: str) -> None:
    """It came last, is the longest, and its user has received the most."""
    jobs = tuple(
        job(f"j{number}", option(duration_s=100.0 + number), at=float(number), user=f"u{number}")
        for number in range(4)
    )
    last = job("front", option(duration_s=9e5), at=9.0, user="u9", priority=0.5)
    for others, first in (((), "front"), ((job("high", option(), at=8.0, priority=1),), "high")):
        state = ClusterState(jobs=(*jobs, last, *others), nodes=(node("n", 1),))
        plan = admission.decide(POLICIES[policy], state, 100.0)
        assert [action.job for action in plan.actions if isinstance(action, Start)] == [first]


@pytest.mark.parametrize(("owner", "stopped"), [(0, True), (-1, False)])
def test_borrowed_gpus_return_to_an_owner_of_the_same_class(owner: int, stopped: bool) -> None:
    lent = running("lent", option(), ("n", 0), team="b", priority=0.5)
    mine = job("mine", option(), team="a", priority=owner)
    state = ClusterState(
        jobs=(lent, mine),
        nodes=(replace(node("n", 1), free=()),),
        limits=Limits(quotas=(Quota(team="a", guaranteed=1),)),
    )
    actions = admission.decide(POLICIES["srtf"], state, 1000.0).actions
    assert any(isinstance(action, Preempt) for action in actions) is stopped


@pytest.mark.django_db
def test_the_last_one_to_be_moved_goes_first_and_may_be_moved_back() -> None:
    ada, admin, node = world.user(), world.admin(), world.fake_node(slots=1)
    jobs = [world.job(ada) for _ in range(4)]
    with pytest.raises(NotAllowed):
        move_to_front(job=jobs[3], actor=ada, now=database_now())
    for one in (jobs[1], jobs[2], jobs[3]):
        move_to_front(job=one, actor=admin, now=database_now(), note="A deadline.")
    move_back(job=jobs[3], actor=admin, now=database_now())
    order = []
    for _ in jobs:
        assert tick().started == 1
        claim = next(claim for claim in node.sync().claims if claim.spec)
        node.end(claim, "succeeded")
        order += [number for number, one in enumerate(jobs) if world.state_of(one) == "succeeded"]
    assert list(dict.fromkeys(order)) == [2, 1, 0, 3]
    with pytest.raises(IllegalTransition):
        move_to_front(job=jobs[0], actor=admin, now=database_now())
    events = jobs[3].events.values_list("type", "reason")
    assert ("job.moved_to_the_front", "A deadline.") in events
    assert AuditEntry.objects.filter(action="job moved to the front", actor=admin).count() == 3
    assert_sound()


@pytest.mark.django_db
def test_a_job_at_the_front_waits_for_higher_classes() -> None:
    admin = world.admin()
    world.fake_node(slots=1)
    moved, high = world.job(admin), world.job(admin, priority=PriorityClass.HIGH)
    move_to_front(job=moved, actor=admin, now=database_now())
    tick()
    assert (world.state_of(moved), world.state_of(high)) == ("queued", "assigned")
