"""An added term is asked for, changed, repeated and told at every interface.

It was added by its checklist.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.clock import database_now
from scheduler.models import Job
from scheduler.selectors.job_requests import request_of
from scheduler.selectors.jobs import events
from scheduler.services.jobs.request_json import request_json
from tests.generated_docs import with_terms
from tests.harness import world
from tests.portal.conftest import token_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def like() -> dict[str, Any]:
    """The two required terms of a job."""
    first = world.job()
    return {"model": first.model, "training_file": first.training_file_id}


def test_programs_ask_for_it_read_it_and_change_it(like: dict[str, Any]) -> None:
    api = token_client(Job.objects.get().owner)
    made = api.post("/api/jobs/", {**like, "cost_center": "R&D"}, format="json").json()
    assert made["cost_center"] == "R&D"
    change = f"/api/jobs/{made['id']}/"
    assert api.patch(change, {"cost_center": "Sales"}, format="json").json()["cost_center"] == "Sales"
    job = Job.objects.get(pk=made["id"])
    assert events(job)[1].reason == "Sales pays now."
    assert request_of(job, database_now())["cost_center"] == "Sales"
    assert request_json({"cost_center": "Sales"}) == {"cost_center": "Sales"}
    refused = api.post("/api/jobs/", {**like, "cost_center": "x" * 21}, format="json").json()
    assert "cost_center" in refused["error"]["fields"]


def test_people_ask_for_it_repeat_it_and_change_it(like: dict[str, Any]) -> None:
    owner = Job.objects.get().owner
    client = Client()
    client.force_login(owner)
    assert client.post("/jobs/new/", {**like, "cost_center": "R&D"}).status_code == 302
    job = Job.objects.get(cost_center="R&D")
    clone = client.get("/jobs/new/", {"from": job.pk})
    assert clone.context["form"]["cost_center"].value() == "R&D"
    assert 'name="cost_center"' in clone.content.decode()
    assert client.post(f"/jobs/{job.pk}/change/", {"cost_center": "Sales"}).status_code == 302
    assert Job.objects.get(pk=job.pk).cost_center == "Sales"


def test_its_row_stands_in_the_docs() -> None:
    head = "| term | type | default | values | who | may change | elsewhere | what it is |\n"
    page = with_terms(head + "| --- " * 8 + "|\n")
    assert "| `cost_center` | name | | | everybody | until it ends | | Who pays. |" in page
