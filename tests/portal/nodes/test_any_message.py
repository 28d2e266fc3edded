"""Property: any message of a node with a live claim is answered.

The answer is never a 5xx.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings

from scheduler.models import Claim
from tests.fuzz.mutations import mutated
from tests.harness import world
from tests.harness.fake_node import PROTOCOL, checkpoint, facts, result, step

pytestmark = pytest.mark.django_db
FILE = {"path": "model.bin", "sha256": "a" * 64, "bytes": 3}
REPORTS = [
    {"kind": "start", "body": {"steps_total": 10, "row_tokens": 8.5, "rows": 3, "software": {"torch": "2"}}},
    step(1),
    {"kind": "eval", "body": {"step": 1, "eval_loss": 0.5}},
    {"kind": "log", "body": {"text": "hello"}},
    {"kind": "memory", "body": {"memory_bytes": 10**9}},
    checkpoint(1, [FILE], stored="node"),
    {"kind": "rendezvous", "body": {"address": "host:1"}},
    result(),
]


class Undone(Exception):
    """Each message finds the same rows."""


@pytest.mark.parametrize("times", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_no_message_of_a_node_is_our_mistake(times: int) -> None:
    node = world.fake_node()
    world.placed_job(node, owner=world.user("ada"))
    claim = Claim.objects.get()
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {node.token}"})
    reports = [{"seq": number, **report} for number, report in enumerate(REPORTS, 1)]
    said = {"claim": str(claim.pk), "fence": claim.attempt.fence, "phase": "running", "reports": reports}
    ended = {**said, "phase": "ended", "outcome": "error", "exit_code": 1, "reason": "because"}
    good = {"protocol": PROTOCOL, "boot_id": "b", "facts": facts(), "gpus": [{"index": 0, "util": 0.5}]}

    @settings(
        max_examples=times, deadline=None, database=None, derandomize=times < 100,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(mutated([{**good, "claims": [said]}, {**good, "claims": [ended]}]))
    def holds(message: Any) -> None:
        raw = json.dumps(message).encode()
        try:
            with transaction.atomic():
                answer = client.post("/agent/v1/sync", raw, content_type="application/json")
                assert answer.status_code < 500, answer.content[:300]
                raise Undone
        except Undone:
            pass

    holds()
