"""The nodes of the demo portal; no agent runs on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from portal.accounts.models import User
from scheduler.models import Node
from scheduler.services.nodes.price import set_price
from scheduler.services.nodes.register import create_join_token, enrol_node
from scheduler.services.nodes.state import readmit_node
from trainer.protocol import PROTOCOL, Enrol, GpuFacts, NodeFacts

GIB = 2**30


@dataclass(frozen=True, slots=True)
class DemoNode:
    name: str
    gpu_model: str
    gpus: int
    price_per_gpu_hour: float


MACHINES = (
    DemoNode("helios-1", "H100-SXM5-80GB", 8, 2.60),
    DemoNode("atlas-1", "A100-SXM4-80GB", 8, 1.40),
    DemoNode("atlas-2", "A100-SXM4-80GB", 8, 1.40),
    DemoNode("juno-1", "L40S", 4, 0.80),
    DemoNode("argo-1", "A10G", 4, 0.50),
)


def join(machine: DemoNode, *, actor: User, now: datetime, until: datetime) -> Node:
    """Enrol a machine through the service that agents use.

    It is heard of `until` then.
    """
    token = create_join_token(actor=actor, now=now)
    memory = round(shipped_catalogue().gpu(machine.gpu_model).memory_bytes)
    gpus = tuple(
        GpuFacts(index=index, model=machine.gpu_model, memory_bytes=memory) for index in range(machine.gpus)
    )
    facts = NodeFacts(
        hostname=machine.name, cores=16 * machine.gpus, memory_bytes=128 * machine.gpus * GIB, gpus=gpus
    )
    message = Enrol(join_token=token, protocol=PROTOCOL, name=machine.name, facts=facts)
    node, _ = enrol_node(message=message, address="192.0.2.1", now=now)
    Node.objects.filter(pk=node.pk).update(network="ethernet", last_seen_at=until)
    set_price(node=node, price=machine.price_per_gpu_hour, seen=0.0, actor=actor, now=now)
    readmit_node(node=node, now=now)
    return node
