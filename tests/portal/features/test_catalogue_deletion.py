"""Deletion of additions to the catalogue, from the page and over REST.

It is refused while the entry is needed.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from knowledge.catalogue import catalogue_entries
from knowledge.catalogue.portal_catalogue import forget_entries, portal_catalogue
from knowledge.models import CatalogEntry, Execution
from knowledge.services import record_execution
from portal.accounts.models import AuditEntry, User
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.models import Calibration, DatasetFile, Job, Node
from scheduler.services.jobs.verbs import cancel_job
from scheduler.states import NodeState
from tests.harness import world
from tests.knowledge.conftest import TINY
from tests.portal.features.test_catalogue import GPU, SHAPE

pytestmark = pytest.mark.django_db
NAME = "Exotic 9000/b & co"
MODEL = "our/model"


@pytest.fixture(autouse=True)
def _added(admin_api: APIClient) -> None:
    admin_api.post("/api/gpus/", GPU | {"name": NAME}, format="json")
    admin_api.post("/api/models/", {"name": MODEL, "config": SHAPE}, format="json")


def names() -> list[str]:
    return list(CatalogEntry.objects.order_by("kind").values_list("name", flat=True))


def measured_on(gpu_model: str) -> Execution:
    config = replace(TINY, gpu_model=gpu_model)
    return record_execution(
        attempt_id=uuid4(),
        config=config, status="ok", now=timezone.now(), tokens_per_second=100.0,
    )  # fmt: skip


def cancel(job: Job) -> None:
    cancel_job(job=job, actor=job.owner, now=timezone.now())


def test_an_entry_is_deleted_on_the_page_after_a_question_that_tells_what_is_no_longer_learnt(
    admin_browser: Client, person: User
) -> None:
    execution = measured_on(NAME)
    page = admin_browser.get("/catalogue/").content.decode()
    assert "Predictions do not learn from its 1 execution until it is added again." in page
    gone = admin_browser.post("/catalogue/gpu/delete/", {"name": NAME}, follow=True).content.decode()
    assert "Exotic 9000/b &amp; co is no longer in the catalogue." in gone
    assert names() == [MODEL]
    entry = AuditEntry.objects.get(action="catalogue entry deleted")
    assert (entry.actor, entry.target, entry.data["memory_bytes"]) == (person, f"gpu {NAME}", 64 * 2**30)
    assert not portal_catalogue().knows(execution.config)
    catalogue_entries.add_gpu(**{**GPU, "name": NAME}, now=timezone.now())  # type: ignore[arg-type]
    known = portal_catalogue()
    assert known.knows(execution.config), "the execution stayed, and teaches again"


def test_a_program_deletes_a_gpu_and_a_model(admin_api: APIClient) -> None:
    assert admin_api.delete(f"/api/gpus/{quote(NAME)}/").status_code == 204
    assert admin_api.delete(f"/api/models/{quote(MODEL, safe='')}/").status_code == 204
    assert names() == []
    assert MODEL not in [model["id"] for model in admin_api.get("/api/models/").json()["data"]]


@pytest.mark.parametrize("path", ["/api/gpus/T4/", "/api/models/llama3.1-8b/", f"/api/models/{NAME}/"])
def test_only_what_was_added_can_be_deleted(path: str, admin_api: APIClient) -> None:
    refused = admin_api.delete(path)
    assert refused.status_code == 404
    assert "is not among the" in refused.json()["error"]["message"]


def test_only_administrators_delete(api: APIClient, browser: Client) -> None:
    assert api.delete(f"/api/models/{MODEL}/").status_code == 403
    assert browser.post("/catalogue/model/delete/", {"name": MODEL}).status_code == 403
    assert names() == [NAME, MODEL]


def test_a_gpu_that_a_node_offers_stays_until_the_node_was_removed(
    admin_browser: Client, admin_api: APIClient
) -> None:
    node = world.fake_node(model=NAME, name="gpu-box")
    refused = admin_browser.post("/catalogue/gpu/delete/", {"name": NAME}, follow=True).content.decode()
    assert "The node gpu-box still offers Exotic 9000/b &amp; co; remove it from the portal first." in refused
    assert admin_api.delete(f"/api/gpus/{quote(NAME)}/").status_code == 409
    Node.objects.update(state=NodeState.DRAINED)
    admin_browser.post(f"/nodes/{node.node_id}/remove/")
    assert admin_api.delete(f"/api/gpus/{quote(NAME)}/").status_code == 204


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (f"/api/gpus/{quote(NAME)}/", {"params": {"gpu_model": NAME}}),
        (f"/api/models/{MODEL}/", {"model": MODEL}),
        (f"/api/models/{MODEL}/", {"model": f"random/{MODEL}"}),
    ],
)
def test_what_a_job_needs_stays_until_the_job_has_ended(
    path: str, wanted: dict[str, object], admin_api: APIClient, browser: Client, person: User
) -> None:
    job = world.job(person, **wanted)
    refused = admin_api.delete(path)
    assert refused.status_code == 409
    assert "has not ended; cancel or wait first." in refused.json()["error"]["message"]
    cancel(job)
    assert admin_api.delete(path).status_code == 204
    for page in (f"/jobs/{job.pk}/", f"/jobs/new/?like={job.pk}", "/jobs/", "/queue/", "/analytics/"):
        assert browser.get(page).status_code == 200, "ended jobs go on naming it"


def test_a_model_that_a_calibration_is_to_train_stays(admin_api: APIClient, data_file: DatasetFile) -> None:
    node = Node.objects.get(pk=world.fake_node().node_id)
    given = {"node": node, "requested_by": data_file.owner, "file": data_file}
    plan, now = [{"model_name": f"random/{MODEL}"}], timezone.now()
    Calibration.objects.create(**given, plan=plan, requested_at=now, until=now)
    refused = admin_api.delete(f"/api/models/{MODEL}/")
    assert (refused.status_code, names()) == (409, [NAME, MODEL])
    assert "calibration" in refused.json()["error"]["message"]


def test_waiting_jobs_are_predicted_anew(admin_api: APIClient, person: User) -> None:
    world.fake_node()
    job = world.job(person)
    refresh_options()
    assert refresh_options() == 0
    admin_api.delete(f"/api/gpus/{quote(NAME)}/")
    assert refresh_options() == 1
    before = job.options_for
    job.refresh_from_db()
    assert job.options_for != before


def test_a_job_submitted_while_its_model_was_deleted_gets_defaults_and_holds_nobody_up(person: User) -> None:
    world.fake_node()
    plain = "ourmodel"
    CatalogEntry.objects.filter(name=MODEL).update(name=plain)
    forget_entries()
    late, other = world.job(person, model=plain), world.job(person)
    CatalogEntry.objects.all().delete()
    forget_entries()
    assert refresh_options() == 2
    sources = [
        job.options[0]["source"]
        for job in Job.objects.filter(pk__in=(late.pk, other.pk)).order_by("submitted_at")
    ]
    assert sources == ["default", "prior"]
