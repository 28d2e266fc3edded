"""A node that is deleted for good.

Only the history of jobs still knows it.
"""

from __future__ import annotations

import pytest
from django.db import IntegrityError
from django.utils import timezone

from portal.accounts.models import AuditEntry
from portal.clock import database_now
from scheduler.errors import Conflict, NotFound
from scheduler.loop.tick import tick
from scheduler.models import Checkpoint, Claim, Job, Node
from scheduler.selectors.analysis.overview import counts
from scheduler.selectors.checkpoints import resumable
from scheduler.selectors.cluster.capacity import load
from scheduler.selectors.cluster.gpu_lanes import nodes_with_gpus
from scheduler.selectors.cluster.inventory import inventory
from scheduler.selectors.nodes import all_nodes, get_node, node_by_token
from scheduler.services.deletions import remove_node
from scheduler.services.nodes.state import readmit_node
from scheduler.states import REMOVABLE, JobState, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, result, step
from trainer.protocol import PROTOCOL

pytestmark = pytest.mark.django_db


def remove(node: FakeNode) -> None:
    remove_node(node=Node.objects.get(pk=node.node_id), actor=world.admin(), now=database_now())


def node_with_a_past() -> tuple[FakeNode, Job]:
    node = world.fake_node(name="gpu-box")
    job = world.placed_job(node)
    order = next(iter(node.orders.values()))
    node.run(order, step(1))
    node.end(order, "succeeded", result())
    Node.objects.update(state=NodeState.DRAINED)
    return node, job


def test_a_removed_node_is_in_no_list_and_no_offer_and_its_token_is_worthless() -> None:
    node, _ = node_with_a_past()
    remove(node)
    assert not all_nodes().exists()
    assert not nodes_with_gpus().exists()
    assert load(timezone.now()) == []
    assert inventory().pools == ()
    assert (counts(database_now()).gpus, sum(counts(database_now()).nodes.values())) == (0, 0)
    with pytest.raises(NotFound):
        get_node(node.node_id)
    assert node_by_token(node.token) is None
    assert node.post_sync({"protocol": PROTOCOL, "boot_id": "b", "claims": []}).status_code == 401
    assert AuditEntry.objects.get(action="node removed").data == {"name": "gpu-box"}


def test_its_jobs_go_on_naming_it_and_its_name_is_free() -> None:
    node, job = node_with_a_past()
    remove(node)
    assert Claim.objects.select_related("node").get(attempt__job=job).node.name == "gpu-box"
    again = world.fake_node(name="gpu-box")
    assert get_node(again.node_id).name == "gpu-box"
    assert Node.objects.filter(name="gpu-box").count() == 2


def test_it_is_given_no_work_and_never_comes_back() -> None:
    node, _ = node_with_a_past()
    remove(node)
    gone = Node.objects.get()
    readmit_node(node=gone, now=database_now())
    world.silence(node, 10_000)
    waiting = world.job()
    assert tick().started == 0
    assert Node.objects.get().state == NodeState.DRAINED
    assert world.state_of(waiting) == JobState.QUEUED


@pytest.mark.parametrize("state", sorted(set(NodeState) - REMOVABLE))
def test_a_node_that_may_work_is_not_removed(state: NodeState) -> None:
    node = world.fake_node()
    Node.objects.update(state=state)
    with pytest.raises(Conflict, match="drain it first"):
        remove(node)
    with pytest.raises(IntegrityError):  # nor by any other way
        Node.objects.update(removed_at=database_now())


def test_a_node_on_which_a_job_has_a_claim_is_not_removed() -> None:
    node = world.fake_node()
    world.placed_job(node)
    Node.objects.update(state=NodeState.BLOCKED)
    with pytest.raises(Conflict, match="still has GPUs"):
        remove(node)


def test_it_is_removed_once() -> None:
    node, _ = node_with_a_past()
    remove(node)
    with pytest.raises(Conflict, match="already"):
        remove(node)


def test_a_job_does_not_wait_for_a_checkpoint_that_went_with_its_node() -> None:
    node = world.fake_node()
    job = world.placed_job(node)
    attempt = job.attempts.get()
    here = Node.objects.get()
    claim = attempt.claims.get()
    at = {"job": job, "attempt": attempt, "claim": claim, "files": [], "at": database_now()}
    Checkpoint.objects.create(step=5, node=None, **at)
    Checkpoint.objects.create(step=9, node=here, **at)
    furthest = resumable(job)
    assert furthest is not None
    assert furthest.step == 9
    Node.objects.update(state=NodeState.LOST, removed_at=database_now())
    reached = resumable(job)
    assert reached is not None
    assert reached.step == 5
