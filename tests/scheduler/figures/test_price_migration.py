"""Prices that were set before a portal kept them: since the node joined, marked as estimated."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module

import pytest
from django.apps import apps

from scheduler.models import Node, NodePrice
from tests.harness import world

migration = import_module("scheduler.migrations.0018_node_prices")


@pytest.mark.django_db
@pytest.mark.two_databases
def test_todays_price_counts_from_the_beginning_and_is_marked() -> None:
    priced, free = world.fake_node(), world.fake_node()
    joined = datetime(2026, 1, 2, tzinfo=UTC)
    Node.objects.filter(pk=priced.node_id).update(price_per_gpu_hour=1.4, enrolled_at=joined)
    migration.from_the_beginning(apps, None)
    row = NodePrice.objects.get()
    assert (row.node_id, row.since, row.price_per_gpu_hour) == (priced.node_id, joined, 1.4)
    assert row.estimated
    assert free.node_id != row.node_id
