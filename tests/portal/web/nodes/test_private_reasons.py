"""A node's page tells everyone its state, and administrators alone which jobs and folders it declined."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.models import Node
from scheduler.services.nodes.state import record_decline
from tests.harness import world

pytestmark = pytest.mark.django_db
SECRET = "the folder /srv/models/secret of ftjob-01a2065b99f1a1533374bdc2 is missing"


def test_declines_and_addresses_are_told_to_administrators(
    browser: Client, api: APIClient, person: User
) -> None:
    node = world.fake_node()
    row = Node.objects.get(pk=node.node_id)
    for _ in range(3):
        record_decline(node=row, reason=SECRET, now=database_now())
    for path in (f"/nodes/{node.node_id}/", f"/nodes/{node.node_id}/live/", "/nodes/"):
        page = browser.get(path).content.decode()
        assert SECRET not in page
        assert "From 127.0.0.1" not in page
    assert "It declined several starts" in browser.get(f"/nodes/{node.node_id}/").content.decode()
    assert SECRET not in api.get(f"/api/nodes/{node.node_id}/").content.decode()
    User.objects.filter(pk=person.pk).update(is_staff=True)
    assert SECRET in browser.get(f"/nodes/{node.node_id}/").content.decode()
