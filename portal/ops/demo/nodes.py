"""The nodes of the demo portal; no agent runs on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from knowledge.core.domain import catalogue
from portal.accounts.models import User
from scheduler.models import Node
from scheduler.services.nodes.register import create_join_token, enrol
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
    """Enrol a machine through the service that agents enrol through; it is heard of `until` then."""
    token = create_join_token(actor=actor, now=now)
    memory = round(catalogue.gpu(machine.gpu_model).memory_bytes)
    gpus = tuple(
        GpuFacts(index=index, model=machine.gpu_model, memory_bytes=memory) for index in range(machine.gpus)
    )
    facts = NodeFacts(
        hostname=machine.name, cores=16 * machine.gpus, memory_bytes=128 * machine.gpus * GIB, gpus=gpus
    )
    message = Enrol(join_token=token, protocol=PROTOCOL, name=machine.name, facts=facts)
    node, _ = enrol(message=message, address="192.0.2.1", now=now)
    Node.objects.filter(pk=node.pk).update(
        price_per_gpu_hour=machine.price_per_gpu_hour, network="ethernet", last_seen_at=until
    )
    readmit_node(node=node, now=now)
    return node
