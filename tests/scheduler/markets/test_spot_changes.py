"""A waiting job that may use spot nodes from then on, or may not any more."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from rest_framework.test import APIClient

from portal.clock import database_now
from scheduler.loop.predict.job_changes import find_next
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.selectors.figures.promise import is_renewed
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.portal.conftest import token_client
from tests.scheduler.markets import making

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
OFFERED = "On spot nodes, too, which may be withdrawn"


@pytest.fixture
def node() -> FakeNode:
    return making.market_node(making.market())


@pytest.fixture
def waits(node: FakeNode) -> Job:
    """A job that may not use the only idle node; another one holds the node that stays."""
    world.fake_node(slots=1)
    world.job()
    tick()
    job = world.job()
    tick()
    assert world.state_of(job) == "queued"
    job.refresh_from_db()
    return job


@pytest.fixture
def api(waits: Job) -> APIClient:
    return token_client(waits.owner)


def change(api: APIClient, job: Job, **values: Any) -> Any:
    return api.patch(f"/api/jobs/{job.pk}/", values, format="json")


def test_spot_nodes_are_offered_and_taken_by_the_change(api: APIClient, waits: Job) -> None:
    api.get(f"/api/jobs/{waits.pk}/changes/")
    find_next(database_now())
    offered = {one["text"]: one for one in api.get(f"/api/jobs/{waits.pk}/changes/").json()["offers"]}
    one = offered[OFFERED]
    assert (one["kind"], one["change"], one["may"], one["delayed"]) == ("spot", {"spot": "yes"}, True, 0)
    answer = change(api, waits, version=waits.version, **one["change"])
    assert (answer.status_code, answer.json()["spot"]) == (200, "yes")
    event = waits.events.get(type="job.promise_changed")
    assert (event.data["spot"], event.reason) == ([False, True], "It may use spot nodes now.")
    assert tick().started == 1
    assert world.state_of(waits) == "assigned"


def test_the_button_and_the_form_change_it_too(client: Client, waits: Job) -> None:
    client.force_login(waits.owner)
    client.get(f"/jobs/{waits.pk}/changes/")
    find_next(database_now())
    answer = client.get(f"/jobs/{waits.pk}/changes/")
    fields = next(fields for offer, fields in answer.context["rows"] if offer.kind == "spot")
    assert client.post(f"/jobs/{waits.pk}/change/", dict(fields)).status_code == 302
    waits.refresh_from_db()
    assert waits.spot
    assert is_renewed(waits), "its options are others, and so is its promise"
    assert client.post(f"/jobs/{waits.pk}/change/", {"spot": "no"}).status_code == 302
    waits.refresh_from_db()
    assert not waits.spot
    assert tick().started == 0
    assert client.post(f"/jobs/{waits.pk}/change/", {"goal": waits.goal}).status_code == 302
    waits.refresh_from_db()
    assert not waits.spot  # what is left out stays as it is


def test_large_checkpoints_keep_it_off_spot_nodes_and_nothing_is_offered(
    api: APIClient, waits: Job, settings: LazySettings
) -> None:
    settings.CHECKPOINT_UPLOAD_BYTES = 10_000
    answer = change(api, waits, spot="yes")
    assert answer.status_code == 400
    assert "a withdrawal would cost all" in answer.json()["error"]["fields"]["spot"]
    api.get(f"/api/jobs/{waits.pk}/changes/")
    find_next(database_now())
    response = api.get(f"/api/jobs/{waits.pk}/changes/").json()
    assert OFFERED not in {one["text"] for one in response["offers"]}
    waits.refresh_from_db()
    assert not waits.spot


def test_a_running_job_stays_as_it_is(api: APIClient, waits: Job) -> None:
    runs = Job.objects.exclude(pk=waits.pk).get()
    answer = change(token_client(runs.owner), runs, spot="yes")
    assert answer.status_code == 409
    assert "only while the job waits" in answer.json()["error"]["fields"]["spot"]
