"""A node without GPUs or processes.

It speaks the real protocol through the real endpoint. Most tests begin with one that has joined: the first of
a kind enrols and reports as an agent does, and the rows that this leaves are copied for all later ones, with
names, tokens and times of their own. `tests/scheduler/nodes/test_joined.py` compares both ways.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import DateTimeField, Model, Q
from django.test import Client

from knowledge.catalogue.portal_catalogue import portal_catalogue
from portal.accounts.models import AuditEntry, User
from portal.accounts.services import digest_of
from portal.clock import database_now
from portal.events.models import Event
from scheduler.models import Gpu, JoinToken, Node
from scheduler.models.ids import new_node_id
from scheduler.services.nodes.register import create_join_token
from trainer import protocol_parsing
from trainer.protocol import ClaimOrder, SyncReply

PROTOCOL = 1
COPIED = {"slots", "model", "memory_bytes", "heard"}  # with other facts a node takes the endpoint


def facts(slots: int = 2, model: str = "cpu", memory_bytes: int = 8 << 30, **more: Any) -> dict[str, Any]:
    """The facts of a node at enrolment; `more` as in the protocol."""
    gpu = {"model": model, "memory_bytes": memory_bytes}
    if model == "cpu":
        gpu |= {"peak_flops": 5e10, "bandwidth_bytes_s": 8e9}
    return {
        "hostname": "fake",
        "cores": slots + 1,
        "memory_bytes": memory_bytes * slots,
        "gpus": [{"index": index, **gpu} for index in range(slots)],
        **more,
    }


def gpu_facts(*uuids: str, model: str = "NVIDIA A100-SXM4-80GB", **more: Any) -> dict[str, Any]:
    """The facts of a node with these GPUs."""
    gpu = {"model": model, "memory_bytes": 80 << 30}
    return facts(**more) | {"gpus": [{"index": n, "uuid": uuid, **gpu} for n, uuid in enumerate(uuids)]}


@dataclass
class FakeNode:
    """`specs` and `seqs` are what a real agent keeps on its disk."""

    client: Client
    node_id: str
    token: str
    boot_id: str = "boot-1"
    orders: dict[str, ClaimOrder] = field(default_factory=dict)
    seqs: dict[str, int] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    @classmethod
    def join(
        cls,
        join_token: str,
        *,
        name: str = "fake",
        heard: bool = True,
        uuids: Sequence[str] = (),
        **of_facts: Any,
    ) -> FakeNode:
        """Enrol through the endpoint; unless `heard`, nothing more is heard of it."""
        client = Client()
        said = gpu_facts(*uuids, **of_facts) if uuids else facts(**of_facts)
        body = {"join_token": join_token, "protocol": PROTOCOL, "name": name, "facts": said}
        answer = client.post("/agent/v1/enrol", json.dumps(body), content_type="application/json")
        assert answer.status_code == 201, answer.content
        node = cls(client, answer.json()["node"], answer.json()["node_token"])
        if heard:
            node.sync()
        return node

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def post_sync(self, body: dict[str, Any]) -> Any:
        """The raw answer to any sync body."""
        return self.client.post(
            "/agent/v1/sync", json.dumps(body), content_type="application/json", headers=self.headers
        )

    def sync(self, *claims: dict[str, Any], **more: Any) -> SyncReply:
        """One sync; keeps the orders with a spec, as an agent would."""
        body = {"protocol": PROTOCOL, "boot_id": self.boot_id, "claims": list(claims), **more}
        answer = self.post_sync(body)
        assert answer.status_code == 200, answer.content
        reply = protocol_parsing.parse_reply(answer.json())
        for order in reply.claims:
            if order.spec is not None:
                self.orders[order.claim] = order
        return reply

    def say(self, order: ClaimOrder, phase: str, *reports: dict[str, Any], **more: Any) -> dict[str, Any]:
        """A claim's entry; reports are numbered on from the last one said."""
        numbered = []
        for report in reports:
            self.seqs[order.claim] = self.seqs.get(order.claim, 0) + 1
            numbered.append({"seq": self.seqs[order.claim], **report})
            if report.get("kind") == "start":
                self.begun.add(order.claim)
        return {"claim": order.claim, "fence": order.fence, "phase": phase, "reports": numbered, **more}

    def take_up(self) -> ClaimOrder:
        """Sync until there is a new claim, and report it as starting."""
        order = next(order for order in self.sync().claims if order.spec is not None)
        self.sync(self.say(order, "starting"))
        return order

    def run(self, order: ClaimOrder, *reports: dict[str, Any]) -> SyncReply:
        return self.sync(self.say(order, "running", *reports))

    def end(self, order: ClaimOrder, outcome: str, *reports: dict[str, Any], reason: str = "") -> SyncReply:
        """Report the end; a training that said how many steps it takes leaves an output."""
        if outcome == "succeeded" and order.claim in self.begun:
            self.upload(order, "output/adapter.bin", b"learnt")
        return self.sync(self.say(order, "ended", *reports, outcome=outcome, reason=reason))

    def upload(self, order: ClaimOrder, path: str, content: bytes, *, digest: str | None = None) -> Any:
        """PUT one artifact."""
        return self.client.put(
            f"/agent/v1/claims/{order.claim}/artifacts/{path}?fence={order.fence}",
            content,
            content_type="application/octet-stream",
            headers={**self.headers, "X-Content-SHA256": digest or hashlib.sha256(content).hexdigest()},
        )

    def fetch(self, order: ClaimOrder, name: str) -> Any:
        """GET one input."""
        return self.client.get(
            f"/agent/v1/claims/{order.claim}/inputs/{name}?fence={order.fence}", headers=self.headers
        )

    def save_checkpoint(self, order: ClaimOrder, step: int) -> SyncReply:
        """Upload a small checkpoint and register it."""
        content = f"weights at {step}".encode()
        assert self.upload(order, f"checkpoints/step-{step}/weights.bin", content).status_code == 204
        file = {"path": "weights.bin", "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        return self.run(order, checkpoint(step, [file]))


def step(number: int, *, loss: float = 2.0, rate: float = 1000.0, **metrics: Any) -> dict[str, Any]:
    """A step report; `metrics`: more of them than the earliest agents sent."""
    body = {"step": number, "total_steps": 10, "loss": loss, "tokens_per_s": rate, "memory_bytes": 10**8}
    return {"kind": "step", "body": {**body, **metrics}}


def checkpoint(number: int, files: list[dict[str, Any]], stored: str = "portal") -> dict[str, Any]:
    return {"kind": "checkpoint", "body": {"step": number, "stored": stored, "files": files}}


def result(**values: Any) -> dict[str, Any]:
    """A result report, as trainers write it."""
    body = {
        "tokens_per_s": 1000.0, "startup_s": 3.0, "train_s": 10.0, "runtime_s": 14.0, "step": 10,
        "peak_memory_bytes": 2 * 10**8, "final_loss": 1.5, "software": {"torch": "2.13.0"},
    }  # fmt: skip
    return {"kind": "result", "body": {**body, **values}}


@dataclass(frozen=True, slots=True)
class Left:
    """The rows that a node left when it joined."""

    node: Node
    token: JoinToken
    of_node: Sequence[Gpu | Event]
    audit: Sequence[AuditEntry]


_left: dict[tuple[object, ...], Left] = {}


def joined(admin: User, name: str, **of_facts: Any) -> FakeNode:
    """A node that has joined with a token of the administrator."""
    if not of_facts.keys() <= COPIED:
        return through_the_endpoint(admin, name, **of_facts)
    # The catalogue of this test decides what its GPU is called.
    kind = (portal_catalogue().gpu_key(of_facts.get("model", "cpu")), *sorted(of_facts.items()))
    if kind not in _left:
        made = through_the_endpoint(admin, name, **of_facts)
        if Node.objects.get(pk=made.node_id).name == name:
            _left[kind] = _rows_of(made, admin)
        return made
    if Node.present.filter(name=name).exists():  # the endpoint numbers it
        return through_the_endpoint(admin, name, **of_facts)
    return _copied(_left[kind], admin, name)


def through_the_endpoint(admin: User, name: str, **of_facts: Any) -> FakeNode:
    """As an agent joins."""
    return FakeNode.join(create_join_token(actor=admin, now=database_now()), name=name, **of_facts)


def _rows_of(made: FakeNode, admin: User) -> Left:
    return Left(
        node=Node.objects.get(pk=made.node_id),
        token=JoinToken.objects.get(created_by=admin),
        of_node=[
            *Gpu.objects.filter(node=made.node_id),
            *Event.objects.filter(subject=made.node_id).order_by("pk"),
        ],
        audit=list(AuditEntry.objects.filter(Q(actor=admin) | Q(target=made.node_id)).order_by("pk")),
    )


def _copied(left: Left, admin: User, name: str) -> FakeNode:
    now, pk, token = database_now(), new_node_id(), "fnode-" + secrets.token_urlsafe(32)
    made = FakeNode(Client(), pk, token)
    of_admin = {"actor_id": admin.pk, "actor_name": admin.username}
    of_node = [
        _copy(row, now, **({"subject": pk} if isinstance(row, Event) else {"node_id": pk}))
        for row in left.of_node
    ]
    with transaction.atomic():
        lifetime = left.token.expires_at - left.token.created_at
        joining = {"created_by_id": admin.pk, "token_hash": digest_of(secrets.token_urlsafe(24))}
        _copy(left.token, now, **joining, expires_at=now + lifetime).save(force_insert=True)
        _copy(left.node, now, pk=pk, name=name, token_hash=digest_of(token)).save(force_insert=True)
        for model in (Gpu, Event):
            model.objects.bulk_create([row for row in of_node if isinstance(row, model)])
        AuditEntry.objects.bulk_create(
            _copy(entry, now, **of_admin) if entry.actor_id else _copy(entry, now, node=name, target=pk)
            for entry in left.audit
        )
    return made


def _copy(row: Model, now: datetime, **changed: Any) -> Model:
    """Return a new row with the values of another; its times are now."""
    fields = [field for field in row._meta.concrete_fields if not field.primary_key]
    values = {field.attname: getattr(row, field.attname) for field in fields}
    times = {
        field.attname: now
        for field in fields
        if isinstance(field, DateTimeField) and values[field.attname] is not None
    }
    return type(row)(**values | times | changed)
