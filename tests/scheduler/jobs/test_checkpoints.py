"""Checkpoints that lie on one node alone.

They may be gone when a job is to go on from them.
"""

from __future__ import annotations

import pytest

from scheduler.loop.tick import tick
from scheduler.models import Checkpoint
from tests.harness import world
from tests.harness.fake_node import FakeNode, checkpoint
from trainer.protocol import ClaimOrder

pytestmark = pytest.mark.django_db
BIG = [{"path": "weights.bin", "sha256": "0" * 64, "bytes": 10**11}]


def resumed_at(node: FakeNode) -> tuple[ClaimOrder, int]:
    assert tick().started == 1
    order = node.take_up()
    assert order.spec is not None
    return order, order.spec.resume.step if order.spec.resume else 0


def test_a_job_goes_on_from_what_is_left_when_a_node_has_deleted_its_checkpoints(node: FakeNode) -> None:
    """A job goes on from an older checkpoint once its node has deleted newer ones.

    This happens after a pause of days. Otherwise each new start would be declined until the job
    fails.
    """
    job = world.placed_job(node)
    first = node.take_up()
    node.save_checkpoint(first, 10)
    node.run(first, checkpoint(20, BIG, stored="node"), checkpoint(30, BIG, stored="node"))
    node.end(first, "killed")
    order, step = resumed_at(node)
    assert step == 30
    node.end(order, "declined", checkpoint(30, [], stored="gone"), reason="it is not on this node any more")
    assert [kept.step for kept in Checkpoint.objects.filter(job=job)] == [10]
    assert resumed_at(node)[1] == 10


def test_a_node_speaks_of_its_own_checkpoints_only(node: FakeNode) -> None:
    job = world.placed_job(node)
    order = node.take_up()
    node.save_checkpoint(order, 10)
    node.run(order, checkpoint(10, [], stored="gone"))
    assert Checkpoint.objects.filter(job=job).exists()
