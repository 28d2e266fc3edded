"""A node without GPUs or processes.

It speaks the real protocol through the real endpoint.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from trainer import protocol_parsing
from trainer.protocol import ClaimOrder, SyncReply

PROTOCOL = 1


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


@dataclass
class FakeNode:
    """`specs` and `seqs` are what a real agent keeps on its disk."""

    client: Client
    node_id: str
    token: str
    boot_id: str = "boot-1"
    orders: dict[str, ClaimOrder] = field(default_factory=dict)
    seqs: dict[str, int] = field(default_factory=dict)

    @classmethod
    def join(cls, join_token: str, *, name: str = "fake", heard: bool = True, **of_facts: Any) -> FakeNode:
        """Enrol through the endpoint; unless `heard`, nothing more is heard of it."""
        client = Client()
        body = {"join_token": join_token, "protocol": PROTOCOL, "name": name, "facts": facts(**of_facts)}
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
        return {"claim": order.claim, "fence": order.fence, "phase": phase, "reports": numbered, **more}

    def take_up(self) -> ClaimOrder:
        """Sync until there is a new claim, and report it as starting."""
        order = next(order for order in self.sync().claims if order.spec is not None)
        self.sync(self.say(order, "starting"))
        return order

    def run(self, order: ClaimOrder, *reports: dict[str, Any]) -> SyncReply:
        return self.sync(self.say(order, "running", *reports))

    def end(self, order: ClaimOrder, outcome: str, *reports: dict[str, Any], reason: str = "") -> SyncReply:
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
