"""A budget and a memory hold on the very node that a job is placed on, not on its GPU model in general."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Goal
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.core.types import ClusterState
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.snapshot import take_snapshot
from scheduler.loop.tick import tick
from scheduler.models import Allocation, Gpu, Job, Node
from scheduler.selectors.cluster.inventory import inventory
from tests.harness import world
from tests.harness.fake_node import FakeNode

pytestmark = pytest.mark.django_db
A100 = "A100-SXM4-80GB"
GIB = 1 << 30


@pytest.fixture
def owner() -> User:
    return world.user()


@pytest.fixture
def cheap() -> FakeNode:
    return a_node("cheap", price=1.0)


@pytest.fixture
def dear() -> FakeNode:
    return a_node("dear", price=10.0)


def a_node(name: str, *, price: float = 0.0, memory_gib: int = 80) -> FakeNode:
    node = world.fake_node(name=name, slots=1, model=A100, memory_bytes=memory_gib * GIB)
    Node.objects.filter(name=name).update(price_per_gpu_hour=price)
    return node


def ask(owner: User, **values: Any) -> Job:
    params = {"max_steps": 2000, "tuning": "lora", **values.pop("params", {})}
    return world.job(owner, model=values.pop("model", "llama3.2-1b"), params=params, **values)


def placed_on(job: Job) -> str | None:
    """The name of the node that a tick puts the job on."""
    tick()
    held = Allocation.objects.filter(claim__attempt__job=job, released_at__isnull=True)
    return held.values_list("gpu__node__name", flat=True).first()


def wait_text(job: Job) -> str:
    job.refresh_from_db()
    return job.wait_text


def refreshed(job: Job) -> None:
    refresh_options()
    job.refresh_from_db()


def cost_of(owner: User) -> float:
    """The cost of such a job on the cheapest node."""
    job = ask(owner)
    cost = min(read_option(raw).cost.value for raw in job.options)
    Job.objects.all().delete()
    return cost


def test_a_job_waits_for_the_node_that_its_budget_allows(
    owner: User, cheap: FakeNode, dear: FakeNode
) -> None:
    cost = cost_of(owner)
    assert placed_on(ask(owner, budget=2 * cost)) == "cheap"
    second = ask(owner, budget=2 * cost)
    assert placed_on(second) is None
    assert "would break its budget" in wait_text(second)
    assert placed_on(ask(owner, goal=Goal.FASTEST, budget=20 * cost)) == "dear"


def test_a_budget_job_stays_off_dearer_nodes_when_the_cheap_one_is_lost(
    owner: User, cheap: FakeNode, dear: FakeNode
) -> None:
    job = ask(owner, budget=2 * cost_of(owner))
    Node.objects.filter(name="cheap").update(state="lost")
    assert placed_on(job) is None
    refreshed(job)
    assert placed_on(job) is None
    assert "submit it with a larger budget" in wait_text(job)
    Node.objects.filter(name="cheap").update(state="ready")
    refreshed(job)
    assert placed_on(job) == "cheap"


def test_who_submits_over_the_budget_has_agreed_to_what_was_promised(owner: User, dear: FakeNode) -> None:
    job = ask(owner, budget=0.01 * cost_of(owner))
    assert any("No option meets the limits" in note for note in job.notes)
    assert placed_on(job) == "dear"


def test_nobody_has_agreed_to_a_cost_beyond_the_budget_that_was_found_later(owner: User) -> None:
    job = ask(owner, budget=0.000001)
    a_node("dear", price=10.0)
    refreshed(job)
    assert job.promise is None
    assert placed_on(job) is None
    assert "Every node in service would break its budget" in wait_text(job)


@pytest.mark.parametrize("state", ["lost", "draining", "drained"])
def test_nothing_is_promised_at_the_price_of_a_node_out_of_service(
    owner: User, cheap: FakeNode, dear: FakeNode, state: str
) -> None:
    Node.objects.filter(name="cheap").update(state=state)
    job = ask(owner)
    assert job.promise is not None
    assert read_option(job.promise).price_per_gpu_hour == 10.0
    assert [pool.price_per_gpu_hour for pool in inventory().pools] == [10.0]


def test_figures_of_a_cluster_out_of_service_say_so(owner: User, cheap: FakeNode) -> None:
    Node.objects.update(state="lost")
    assert any("No node is in service" in note for note in ask(owner).notes)


def test_a_price_that_rises_before_the_start_is_seen(owner: User, cheap: FakeNode) -> None:
    job = ask(owner, budget=2 * cost_of(owner))
    Node.objects.update(price_per_gpu_hour=10.0)
    assert placed_on(job) is None


def test_a_large_job_runs_on_the_larger_of_two_nodes_with_one_gpu_model(owner: User) -> None:
    a_node("small", memory_gib=16)
    a_node("large", memory_gib=80)
    job = ask(owner, model="llama3.1-8b", params={"tuning": "lora"})
    assert job.options
    assert placed_on(job) == "large"
    other = ask(owner, model="llama3.1-8b", params={"tuning": "lora"})
    assert placed_on(other) is None


def test_a_small_job_may_run_on_either(owner: User) -> None:
    a_node("small", memory_gib=16)
    a_node("large", memory_gib=80)
    assert {placed_on(ask(owner, model="builtin/tiny-llama")) for _ in range(2)} == {"small", "large"}


def test_a_job_out_of_memory_does_not_fail_while_the_larger_node_is_away(owner: User) -> None:
    a_node("small", memory_gib=16)
    a_node("large", memory_gib=80)
    job = ask(owner, model="llama3.1-8b", params={"tuning": "lora"})
    Node.objects.filter(name="large").update(state="lost")
    Job.objects.update(less_memory_than=60 * GIB, options=[], options_for="others")
    refreshed(job)
    assert job.state == "queued"


def test_memory_and_price_of_each_node_are_in_the_snapshot(cheap: FakeNode) -> None:
    Gpu.objects.update(memory_bytes=40 * GIB)
    state: ClusterState = take_snapshot({}, database_now())
    assert [(node.price_per_gpu_hour, node.gpu_memory_bytes) for node in state.nodes] == [(1.0, 40 * GIB)]
