"""The sites of GPUs as the portal keeps them, and as its policies see them."""

from __future__ import annotations

from typing import Any

import pytest

from portal.clock import database_now
from scheduler.core.types import GpuSite
from scheduler.loop.snapshot import take_snapshot
from scheduler.models import Gpu, Node
from scheduler.services.nodes.register import update_facts
from tests.harness import world
from tests.harness.fake_node import facts
from trainer.protocol import NodeFacts
from trainer.protocol_parsing import parse_facts

pytestmark = pytest.mark.django_db
PAIRS = [{"socket": slot // 2, "numa": slot // 2, "switch": slot} for slot in range(4)]


def declared(*places: dict[str, Any]) -> NodeFacts:
    reported = facts(slots=len(places))
    reported["gpus"] = [
        {**gpu, "declared": place} for gpu, place in zip(reported["gpus"], places, strict=True)
    ]
    return parse_facts(reported)


@pytest.fixture
def node() -> Node:  # of four slots instead of two
    return Node.objects.get(pk=world.fake_node(slots=4).node_id)


def test_policies_see_where_gpus_sit_and_what_changed(node: Node) -> None:
    assert take_snapshot({}, database_now()).nodes[0].sites == ()
    update_facts(node=node, facts=declared(*PAIRS), now=database_now())
    node.refresh_from_db()
    assert (node.topology_declared, node.topology_warning) == (True, "")
    assert take_snapshot({}, database_now()).nodes[0].sites == tuple(
        GpuSite(slot // 2, slot // 2, slot) for slot in range(4)
    )
    update_facts(node=node, facts=parse_facts(facts(slots=4)), now=database_now())
    assert take_snapshot({}, database_now()).nodes[0].sites == ()


def test_what_cannot_be_is_warned_of_and_not_used(node: Node) -> None:
    update_facts(node=node, facts=declared(*({**place, "switch": 0} for place in PAIRS)), now=database_now())
    node.refresh_from_db()
    assert "GPUs 0 and 2 share a PCIe switch and sit in different NUMA nodes" in node.topology_warning
    assert not Gpu.objects.filter(site__isnull=False).exists()
