"""Input made to cost much, of the largest size that an endpoint takes.

It is answered soon and stored nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from rest_framework.test import APIClient

from scheduler.models import Job, Node
from tests.harness import world
from tests.harness.fake_node import PROTOCOL
from tests.harness.hostile import JSON_KINDS, bounded, json_texts

pytestmark = pytest.mark.django_db
Body = Callable[..., dict[str, object]]


@pytest.mark.one_database
@pytest.mark.parametrize("name", JSON_KINDS)
def test_no_json_keeps_the_api_busy(api: APIClient, name: str) -> None:
    value = json_texts(settings.MAX_JSON_BYTES - 100)[name]
    for text in (value, f'{{"model": {value}}}', f'{{"params": {value}}}'):
        with bounded(seconds=3):
            answer = api.post("/api/jobs/", text, content_type="application/json")
        assert answer.status_code == 400
        assert len(answer.content) < 10_000
    assert not Job.objects.exists()


@pytest.mark.one_database
@pytest.mark.parametrize("name", JSON_KINDS)
def test_no_json_keeps_the_endpoint_of_the_nodes_busy(client: Any, name: str) -> None:
    node = world.fake_node()
    token = {"authorization": f"Bearer {node.token}"}
    head = f'{{"protocol": {PROTOCOL}, "boot_id": "b", "claims"'
    value = json_texts(settings.DATA_UPLOAD_MAX_MEMORY_SIZE - 100)[name]
    for text in (value, f"{head}: {value}}}", f'{head}: [{{"reports": {value}}}]}}'):
        with bounded(seconds=5):
            answer = client.post("/agent/v1/sync", text, content_type="application/json", headers=token)
        assert answer.status_code in (400, 413), answer.content[:300]
        assert len(answer.content) < 10_000
    with bounded(seconds=3):
        enrolled = client.post("/agent/v1/enrol", value, content_type="application/json")
    assert enrolled.status_code == 413, "who has no token yet sends less"
    assert Node.objects.count() == 1


def test_a_wrong_object_names_some_of_its_many_unknown_fields(api: APIClient, body: Body) -> None:
    wrong = {f"odd{number}": 0 for number in range(5000)}
    for sent in (wrong, body(params=wrong)):
        answer = api.post("/api/jobs/", json.dumps(sent), content_type="application/json")
        assert 10 < len(answer.json()["error"]["fields"]) < 50
