"""A GPU is one GPU.

No device is given to two nodes, and no order names one that is not there.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from portal.clock import database_now
from portal.events.models import Event
from scheduler.errors import Conflict
from scheduler.loop.tick import tick
from scheduler.models import Gpu, Node
from scheduler.services.deletions import remove_node
from scheduler.services.jobs.verbs import cancel_job
from scheduler.services.nodes.register import create_join_token
from scheduler.services.nodes.state import drain_node, resume_node
from scheduler.states import NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, gpu_facts
from tests.harness.threads import at_once
from trainer.protocol import PROTOCOL

pytestmark = pytest.mark.django_db
A, B, C, D = (f"GPU-{letter * 8}-1111-2222-3333-444444444444" for letter in "abcd")
MIG = "MIG-0f9a1b2c-1111-2222-3333-444444444444"


def join(*uuids: str, name: str = "host", **more: Any) -> FakeNode:
    token = create_join_token(actor=world.admin(), now=database_now())
    return FakeNode.join(token, name=name, uuids=uuids, **more)


def row(node: FakeNode) -> Node:
    return Node.objects.get(pk=node.node_id)


def state(node: FakeNode) -> str:
    found = row(node)
    return found.block_kind if found.state == NodeState.BLOCKED else found.state


def resume(node: FakeNode, **how: bool) -> None:
    resume_node(node=row(node), actor=world.admin(), reason="Seen to.", now=database_now(), **how)


def lose(node: FakeNode) -> None:
    world.silence(node, 1000)
    tick()
    assert state(node) == NodeState.LOST


def devices(node: FakeNode) -> list[str | None]:
    return list(Gpu.in_place.filter(node=node.node_id).order_by("index").values_list("device", flat=True))


def given() -> list[str]:
    """The UUIDs of all GPUs that jobs hold."""
    held = Gpu.objects.filter(allocations__released_at__isnull=True, allocations__isnull=False)
    return sorted(held.values_list("uuid", flat=True))


@pytest.mark.parametrize(
    "uuids",
    [(A, B), (MIG,), (B, A), (A.lower(), f" {B.upper()} ")],
    ids=["the same", "a slice", "another order", "other letters"],
)
def test_two_agents_that_report_one_gpu_do_not_both_get_work(uuids: tuple[str, ...]) -> None:
    first, second = join(*([MIG] if uuids == (MIG,) else [A, B])), join(*uuids)
    assert (state(first), state(second)) == ("ready", "shared-gpus")
    assert "offered by node host as well" in row(second).reason
    for _ in range(4):
        world.job()
    tick()
    second.sync(facts=gpu_facts(*uuids))
    tick()
    assert len(given()) == len(set(given())) == len(uuids)
    assert not second.orders


def test_a_gpu_of_two_that_another_node_has_blocks_the_second_as_well() -> None:
    first, second = join(A, B), join(C, B)
    assert (state(first), state(second)) == ("ready", "shared-gpus")
    assert devices(second) == [None, None], "all or none"
    assert B in row(second).reason
    assert C not in row(second).reason


@pytest.mark.parametrize("uuid", ["", "N/A", "[N/A]", "GPU-00000000-0000-0000-0000-000000000000", "unknown"])
def test_gpus_whose_driver_names_none_are_not_compared(uuid: str) -> None:
    assert [state(join(uuid, uuid)) for _ in range(2)] == ["ready", "ready"]


def test_cpu_slots_are_not_compared() -> None:
    assert [state(world.fake_node()) for _ in range(2)] == ["ready", "ready"]


def test_slices_of_one_gpu_are_gpus_of_their_own() -> None:
    assert [state(join(MIG)), state(join(MIG.replace("0f", "1f")))] == ["ready", "ready"]


def test_a_gpu_that_is_listed_twice_is_refused_by_its_field() -> None:
    token = create_join_token(actor=world.admin(), now=database_now())
    body = {"join_token": token, "protocol": PROTOCOL, "name": "box", "facts": gpu_facts(A, B, A.upper())}
    answer = Client().post("/agent/v1/enrol", body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "body.facts.gpus[2].uuid"
    assert not Node.objects.exists()


def test_a_node_that_enrols_anew_takes_the_place_of_the_lost_one_which_cannot_come_back() -> None:
    first = join(A, B)
    lose(first)
    second = join(A, B)
    assert state(second) == "ready"
    taken = Event.objects.get(subject=first.node_id, type="node.gpus_changed")
    assert "those of node host-2 now" in taken.reason
    first.sync()
    assert state(first) == "shared-gpus"
    with pytest.raises(Conflict, match="offered by node host-2"):
        resume(first)
    lose(second)
    first.sync()
    assert (state(first), devices(second)) == ("ready", [None, None])
    second.sync()
    assert state(second) == "shared-gpus"


def test_who_waits_for_a_gpu_gets_it_once_the_other_node_is_removed_or_lost() -> None:
    first, second, third = join(A), join(A), join(A)
    drain_node(node=row(first), actor=world.admin(), reason="x", move_jobs=False, now=database_now())
    tick()
    second.sync()
    assert state(second) == "shared-gpus", "a drained node still has it"
    remove_node(node=row(first), actor=world.admin(), now=database_now())
    second.sync()
    third.sync()
    assert (state(second), state(third)) == ("ready", "shared-gpus")
    lose(second)
    third.sync()
    assert state(third) == "ready"


def test_an_enrolment_that_nobody_follows_holds_no_gpu() -> None:
    ghost = join(A, heard=False)
    assert devices(ghost) == [A.lower()]
    assert state(join(A)) == "ready"
    ghost.sync()
    assert state(ghost) == "shared-gpus"


def test_gpus_that_change_places_between_two_machines_find_their_nodes() -> None:
    first, second = join(A, B), join(C, D)
    first.sync(boot_id="boot-2", facts=gpu_facts(C, B))
    assert (state(first), devices(first)) == ("shared-gpus", [None, B.lower()])
    second.sync(boot_id="boot-2", facts=gpu_facts(A, D))
    first.sync(boot_id="boot-2")
    assert (state(first), state(second)) == ("ready", "ready")
    assert (devices(first), devices(second)) == ([C.lower(), B.lower()], [A.lower(), D.lower()])


def test_a_gpu_that_is_put_in_for_another_of_its_model_is_taken_over_and_noted() -> None:
    node = join(A, B)
    node.sync(facts=gpu_facts(A, C))
    assert (state(node), devices(node)) == ("ready", [A.lower(), C.lower()])
    assert f"{C} instead of {B}" in Event.objects.get(type="node.gpus_changed").reason
    assert state(join(B, name="other")) == "ready"


def test_a_job_keeps_its_gpu_when_they_are_counted_anew() -> None:
    node = join(A, B)
    world.job()
    tick()
    held = Gpu.objects.get(allocations__released_at__isnull=True, allocations__isnull=False)
    other = B if held.uuid == A else A
    node.sync(facts=gpu_facts(B, A))
    assert (state(node), given()) == ("ready", [held.uuid])
    world.job()
    tick()
    assert given() == sorted([A, B])
    indices = {order.spec.gpus for order in node.orders.values() if order.spec} | {
        order.spec.gpus for order in node.sync().claims if order.spec
    }
    assert ({B: 0, A: 1}[other],) in indices


@pytest.mark.parametrize("left", [[A], [B]], ids=["the second fell off", "the first fell off"])
def test_resume_never_contradicts_the_newest_facts(left: list[str]) -> None:
    node = join(A, B)
    node.sync(facts=gpu_facts(*left))
    assert state(node) == "changed-gpus"
    assert (A if left == [B] else B) in row(node).reason
    with pytest.raises(Conflict, match="cannot be resumed"):
        resume(node)
    resume(node, take_over_gpus=True)
    assert (state(node), devices(node)) == ("ready", [left[0].lower()])
    for _ in range(2):
        world.job()
    tick()
    orders = [order.spec for order in node.sync().claims if order.spec]
    assert ([order.gpus for order in orders], given()) == ([(0,)], left)


def test_a_gpu_that_came_back_makes_the_node_ready_again() -> None:
    node = join(A, B)
    node.sync(facts=gpu_facts(A))
    node.sync()
    assert state(node) == "changed-gpus"
    node.sync(facts=gpu_facts(A, B))
    assert (state(node), devices(node)) == ("ready", [A.lower(), B.lower()])


@pytest.mark.parametrize("silent", [False, True])
def test_a_drain_outlasts_a_gpu_that_was_away(silent: bool) -> None:
    node = join(A, B)
    drain_node(node=row(node), actor=world.admin(), reason="x", move_jobs=False, now=database_now())
    node.sync(facts=gpu_facts(A))
    if silent:
        lose(node)
    node.sync(facts=gpu_facts(A, B))
    assert state(node) == "draining"


def test_a_gpu_that_moved_to_another_machine_meanwhile_is_not_taken_back() -> None:
    first = join(A, B)
    first.sync(facts=gpu_facts(A))
    second = join(B, name="other")
    assert state(second) == "ready"
    first.sync(facts=gpu_facts(A, B))
    assert state(first) == "shared-gpus"


def test_gpus_that_were_added_or_are_others_can_be_taken_over_and_history_keeps_the_old_ones() -> None:
    node = join(A, B)
    world.job()
    tick()
    order = node.take_up()
    held = given()
    said = gpu_facts(A if held == [B] else B, C, D)
    for gpu in said["gpus"][1:]:
        gpu["model"] = "NVIDIA L40S"
    node.sync(facts=said)
    with pytest.raises(Conflict, match="still holds a GPU that is gone"):
        resume(node, take_over_gpus=True)
    node.end(order, "lost", reason="The GPU fell off the bus.")
    resume(node, take_over_gpus=True)
    assert state(node) == "ready"
    assert Gpu.in_place.filter(node=node.node_id).count() == 3
    assert (
        list(Gpu.objects.filter(node=node.node_id, gone_at__isnull=False).values_list("uuid", flat=True))
        == held
    )
    assert Node.objects.get().other_facts is None


def test_a_pending_stop_and_other_gpus_both_have_to_end() -> None:
    """What was given up may still run on the GPUs."""
    node = join(A, B)
    job = world.job()
    tick()
    order = node.take_up()
    node.run(order)
    node.sync(node.say(order, "running"), facts=gpu_facts(A))
    cancel_job(job=job, actor=job.owner, now=database_now())
    world.age_state(job, 1000)
    tick()
    node.sync(node.say(order, "running"), facts=gpu_facts(A, B))
    assert state(node) == "changed-gpus", "it still runs what was given up"
    node.sync()
    assert state(node) == "ready"


def test_an_administrator_takes_the_change_over_by_page_and_rest() -> None:
    node, admin = join(A, B), world.admin()
    node.sync(facts=gpu_facts(B))
    browser = Client()
    browser.force_login(admin)
    page = browser.get(f"/nodes/{node.node_id}/")
    assert "those that it reports now" in page.content.decode()
    refused = browser.post(f"/api/nodes/{node.node_id}/resume/", {}, content_type="application/json")
    assert refused.status_code == 409
    assert A in refused.json()["error"]["message"]
    sent = browser.post(f"/nodes/{node.node_id}/resume/", {"reason": "x", "take_over_gpus": "yes"})
    assert (sent.status_code, state(node)) == (302, "ready")
    assert "those that it reports now" not in browser.get(f"/nodes/{node.node_id}/").content.decode()
    node.sync(facts=gpu_facts(B, C))
    taken = browser.post(
        f"/api/nodes/{node.node_id}/resume/", {"take_over_gpus": True}, content_type="application/json"
    )
    assert (taken.status_code, len(taken.json()["gpus"]), state(node)) == (200, 2, "ready")


def test_the_database_itself_gives_a_device_to_one_gpu() -> None:
    first, second = join(A), join(B)
    with pytest.raises(IntegrityError), transaction.atomic():
        Gpu.objects.filter(node=second.node_id).update(device=A.lower())
    assert devices(first) == [A.lower()]


@pytest.mark.two_databases
@pytest.mark.django_db(transaction=True)
def test_of_agents_that_report_one_gpu_at_the_same_moment_one_works() -> None:
    tokens = [create_join_token(actor=world.admin(), now=database_now()) for _ in range(4)]
    nodes = at_once(
        *[lambda token=token: FakeNode.join(token, name="host", uuids=[A, B]) for token in tokens]
    )
    assert sorted(state(node) for node in nodes) == ["ready", "shared-gpus", "shared-gpus", "shared-gpus"]


@pytest.mark.two_databases
@pytest.mark.django_db(transaction=True)
def test_of_lost_nodes_that_come_back_at_the_same_moment_one_works() -> None:
    nodes = []
    for _ in range(3):
        nodes.append(join(A, B))
        lose(nodes[-1])
    at_once(*[node.sync for node in nodes])
    assert sorted(state(node) for node in nodes) == ["ready", "shared-gpus", "shared-gpus"]
