"""Asking for GPUs close together: on the page, over REST, changed later, and in bad ways."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Job
from scheduler.selectors.cluster.stops import recent_levels
from tests.harness import world

pytestmark = pytest.mark.django_db
LEVEL = "topology_level"


@pytest.fixture
def owner(client: Client) -> Any:
    person = world.user()
    client.force_login(person)
    return person


def body(owner: Any, **more: Any) -> dict[str, Any]:
    file = world.data_file(owner)
    return {"model": "builtin/tiny-llama", "training_file": file.pk, **more}


def post(client: Client, path: str, asked: dict[str, Any]) -> Any:
    return client.post(f"/api/{path}", asked, content_type="application/json")


def patch(client: Client, path: str, asked: dict[str, Any]) -> Any:
    return client.patch(f"/api/{path}", asked, content_type="application/json")


def test_a_level_is_kept_started_at_and_told(client: Client, owner: Any) -> None:
    node = world.fake_node(slots=4)
    world.declare_sites(node, 4)
    request = body(owner, topology="guaranteed", topology_level="numa", params={"number_gpus": 2})
    answer = post(client, "jobs/", request)
    assert answer.status_code == 201, answer.content
    assert (answer.json()["topology"], answer.json()[LEVEL]) == ("guaranteed", "numa")
    tick()
    attempt = Attempt.objects.get()
    assert (attempt.link_level, attempt.asked_level) == (3, 3)
    page = client.get(f"/jobs/{answer.json()['id']}/").content.decode()
    assert "in one NUMA node" in page
    assert "one NUMA node <small>required</small>" in page
    post(
        client, "jobs/", body(owner, topology="best_effort", topology_level="numa", params={"number_gpus": 2})
    )
    post(
        client, "jobs/", body(owner, topology="guaranteed", topology_level="numa", params={"number_gpus": 2})
    )
    tick()
    assert "GPUs in one NUMA node required" in client.get("/queue/").content.decode()
    day = client.get("/queue/?last=day", headers={"HX-Request": "true"}).content.decode()
    assert "Of 2 starts that asked for GPUs close together, 2 reached the level." in day
    assert recent_levels(database_now() - timedelta(days=1)).ratio == 1.0


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({LEVEL: "numa"}, "goes with GPUs close together"),
        ({"topology": "none", LEVEL: "numa"}, "goes with GPUs close together"),
        ({"topology": "guaranteed"}, "is needed"),
        ({"topology": "guaranteed", LEVEL: 3}, "numa"),
        ({"topology": "guaranteed", LEVEL: "rack"}, "numa"),
        (
            {"topology": "guaranteed", LEVEL: "nvlink"},
            "no node has 2 GPUs in one NVLink group; the closest is one NUMA node",
        ),
        (
            {"topology": "guaranteed", LEVEL: "numa", "params": {"number_gpus": 4}},
            "no node has 4 GPUs in one NUMA node; the closest is one socket",
        ),
    ],
)
def test_a_level_that_cannot_be_is_refused_at_its_field(
    client: Client, owner: Any, asked: dict[str, Any], complaint: str
) -> None:
    world.declare_sites(world.fake_node(slots=4), 4)
    answer = post(client, "jobs/", body(owner, **asked))
    assert answer.status_code == 400
    assert complaint in str(answer.json()["error"]["fields"][LEVEL])
    assert not Job.objects.exists()


def test_what_is_only_wished_for_is_never_refused(client: Client, owner: Any) -> None:
    world.declare_sites(world.fake_node(slots=4), 4)
    answer = post(client, "jobs/", body(owner, topology="best_effort", topology_level="nvlink"))
    assert answer.status_code == 201


def test_the_form_asks_and_the_page_changes_it(client: Client, owner: Any) -> None:
    world.declare_sites(world.fake_node(slots=4), 4)
    request = body(owner, topology="best_effort", topology_level="pcie")
    made = client.post("/jobs/new/", request)
    assert made.status_code == 302, made.content
    job = Job.objects.get()
    assert (job.topology, job.topology_level) == ("best_effort", 4)
    tab = client.get(f"/jobs/{job.pk}/tabs/change/").content.decode()
    assert "GPUs close together" in tab
    changed = client.post(
        f"/jobs/{job.pk}/change/", {"priority": "normal", "topology": "guaranteed", "topology_level": "numa"}
    )
    assert changed.status_code == 302
    job.refresh_from_db()
    assert (job.topology, job.topology_level) == ("guaranteed", 3)
    looser = patch(client, f"jobs/{job.pk}/", {"topology": "best_effort"})
    assert (looser.json()["topology"], looser.json()[LEVEL]) == ("best_effort", "numa")
    answer = patch(client, f"jobs/{job.pk}/", {"topology": "automatic"})
    assert (answer.json()["topology"], answer.json()[LEVEL]) == ("automatic", None)
    wrong = patch(client, f"jobs/{job.pk}/", {LEVEL: "numa"})
    assert wrong.status_code == 400
    assert "else leave it out" in str(wrong.json()["error"]["fields"][LEVEL])


def test_a_level_alone_is_complained_about_in_the_form(client: Client, owner: Any) -> None:
    answer = client.post("/jobs/new/", body(owner, topology_level="pcie"))
    assert answer.status_code == 400
    assert "else leave it out" in answer.content.decode()
