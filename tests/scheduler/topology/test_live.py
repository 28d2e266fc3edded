"""The policy by topology on a portal: the worked example with declared sites, live."""

from __future__ import annotations

from typing import Any

import pytest

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Gpu, Job, PendingStart
from scheduler.services.jobs.starts import start_attempt
from scheduler.services.policy import choose_policy
from scheduler.states import JobState, PriorityClass
from tests.harness import world
from tests.harness.fake_node import FakeNode

pytestmark = pytest.mark.django_db

# Two sockets of two NUMA nodes of two slots; slot 6 is free.
HELD = {0: "urgent", 1: "low", 2: "low", 3: "urgent", 4: "normal", 5: "low", 7: "normal"}


@pytest.fixture
def machine(settings: Any) -> FakeNode:
    """A node of eight slots with the example's jobs, which have run for long."""
    parameters = {"min_run_s": 0}
    choose_policy(
        name="topology", parameters=parameters, actor=world.admin(), reason="closeness", now=database_now()
    )
    node = world.fake_node(slots=8)
    world.declare_sites(node, 8)
    owner = world.admin()  # who may give every class
    for slot, word in HELD.items():
        job = world.job(
            owner, params={"number_gpus": 1, "max_steps": 3000}, priority=PriorityClass.of_word(word)
        )
        [option] = [one for one in (job.promised,) if one]
        start_attempt(job=job, option=option, gpus=[(node.node_id, slot)], now=database_now())
    for order in list(node.sync().claims):
        node.run(order)
    assert set(Job.objects.values_list("state", flat=True)) == {JobState.RUNNING}
    return node


def stopped_slots() -> list[int]:
    stopping = Attempt.objects.filter(job__state=JobState.STOPPING)
    return sorted(stopping.values_list("claims__allocations__gpu__index", flat=True))


def kept_slots() -> list[int]:
    kept = PendingStart.objects.values_list("gpus__gpu", flat=True)
    return sorted(Gpu.objects.filter(pk__in=kept).values_list("index", flat=True))


def asker(**closeness: Any) -> Job:
    return world.job(world.admin(), params={"number_gpus": 2}, priority=PriorityClass.HIGH, **closeness)


def test_a_required_numa_node_picks_the_victim_of_the_worked_example(machine: FakeNode) -> None:
    new = asker(topology="guaranteed", topology_level=3)
    tick()
    assert stopped_slots() == [7]
    assert kept_slots() == [6, 7]
    assert PendingStart.objects.get().job == new


def test_without_closeness_the_lowest_class_goes(machine: FakeNode) -> None:
    asker(topology="none")
    tick()
    [slot] = stopped_slots()
    assert HELD[slot] == "low"
