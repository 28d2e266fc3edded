"""A node that is copied leaves what one leaves that took the endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.models import Node
from tests.harness import world
from tests.harness.fake_node import FakeNode, joined, through_the_endpoint
from trainer.protocol import to_json

pytestmark = [pytest.mark.django_db, pytest.mark.two_databases]
OURS = ("accounts", "events", "knowledge", "scheduler")


def left_by(join: Callable[..., FakeNode], admin: User, **of_facts: Any) -> tuple[dict[str, list[str]], Any]:
    """All rows of ours once a node has joined, without what is its own, and the answer to its next sync."""
    with transaction.atomic():
        began = database_now()
        node = join(admin, "fake-node", **of_facts)
        own = {node.node_id: "NODE"}
        own |= {
            row.token_hash: "HASH" for name in ("Node", "JoinToken") for row in rows_of("scheduler", name)
        }

        def plain(field: Any, row: Any) -> Any:
            value = getattr(row, field.attname)
            if isinstance(value, datetime):
                return round((value - began) / timedelta(minutes=1))
            if field.primary_key or (field.is_relation and value is not None):
                return "KEY"
            return own.get(value, value) if isinstance(value, str) else json.dumps(value, sort_keys=True)

        rows = {
            model.__name__: [
                str([plain(field, row) for field in model._meta.concrete_fields]) for row in found
            ]
            for model in apps.get_models()
            if model._meta.app_label in OURS and (found := rows_of(model._meta.app_label, model.__name__))
        }
        reply = to_json(node.sync())
        transaction.set_rollback(True)
    return rows, reply


def rows_of(app: str, model: str) -> list[Any]:
    return list(apps.get_model(app, model)._base_manager.order_by("pk"))


@pytest.mark.parametrize(
    "of_facts",
    [{}, {"slots": 8}, {"heard": False}, {"model": "NVIDIA H100 80GB HBM3", "memory_bytes": 80 << 30}],
    ids=str,
)
def test_all_rows_are_the_same(of_facts: dict[str, Any]) -> None:
    joined(world.admin(), "the first of its kind", **of_facts)
    admin = world.admin()
    with_endpoint = left_by(through_the_endpoint, admin, **of_facts)
    copied = left_by(joined, admin, **of_facts)
    assert copied == with_endpoint
    assert {"Node", "Gpu", "Event", "JoinToken", "AuditEntry"} <= copied[0].keys()


def test_a_name_that_is_taken_gets_a_number_and_other_facts_are_kept() -> None:
    for node in (world.fake_node(name="one"), world.fake_node(name="one"), world.fake_node(name="one")):
        node.sync()
    assert set(Node.objects.values_list("name", flat=True)) == {"one", "one-2", "one-3"}
    fast = world.fake_node(software={"torch": "2.13.0"})
    assert Node.objects.get(pk=fast.node_id).software == {"torch": "2.13.0"}
