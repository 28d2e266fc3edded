"""Adding GPUs and models to the catalogue, from the page and over REST."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.models import CatalogEntry
from portal.accounts.models import AuditEntry, User
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.models import Job
from tests.harness import world
from tests.knowledge.catalogue.test_additions import SHAPE

pytestmark = pytest.mark.django_db
GPU = {"name": "Exotic-9000", "memory_gib": 64, "tflops": 300.0, "bandwidth_gb_s": 2000, "link": "pcie5"}


def test_a_node_with_an_unknown_gpu_leads_to_the_form_which_makes_it_known(
    admin_browser: Client, person: User
) -> None:
    node = world.fake_node(model="Exotic 9000 & co")
    job = world.job(person)
    assert job.options[0]["source"] == "default"
    link = "/catalogue/?gpu=Exotic%209000%20%26%20co#gpu"
    for path in ("/nodes/", f"/nodes/{node.node_id}/", f"/nodes/{node.node_id}/live/"):
        assert link in admin_browser.get(path).content.decode()
    form = admin_browser.get("/catalogue/?gpu=Exotic%209000%20%26%20co").content.decode()
    assert 'value="Exotic 9000 &amp; co"' in form
    assert 'name="memory_gib" value="8.0"' in form, "as the node reports it"
    assert "which is not in the catalogue" in form
    added = admin_browser.post("/catalogue/gpu/add/", GPU | {"name": "Exotic 9000 & co"}, follow=True)
    assert "64.0 GiB, 300 TFLOP/s in bf16, 2,000 GB/s, pcie5" in added.content.decode()
    assert "which is not in the catalogue" not in added.content.decode()
    change = admin_browser.get("/catalogue/?gpu=Exotic%209000%20%26%20co").content.decode()
    assert 'name="tflops" value="300.0"' in change
    assert ">Add it<" not in admin_browser.get(f"/nodes/{node.node_id}/").content.decode()
    refresh_options()
    assert Job.objects.get().options[0]["source"] == "prior", "waiting jobs are predicted anew"
    entry = AuditEntry.objects.get(action="catalogue entry added")
    assert (entry.actor, entry.target) == (person, "gpu Exotic 9000 & co")


def test_a_node_with_a_workstation_gpu_is_known_by_what_its_driver_calls_it(
    admin_browser: Client, person: User
) -> None:
    node = world.fake_node(model="NVIDIA RTX A5000")
    assert world.job(person).options[0]["source"] == "prior"
    for path in ("/nodes/", f"/nodes/{node.node_id}/"):
        assert "/catalogue/?gpu=" not in admin_browser.get(path).content.decode()


def test_people_are_told_that_an_administrator_can_describe_a_gpu(browser: Client) -> None:
    world.fake_node(model="Exotic-9000")
    shown = browser.get("/nodes/").content.decode()
    assert "An administrator can add it." in shown
    assert "/catalogue/" not in shown
    assert browser.get("/catalogue/").status_code == 403
    assert browser.post("/catalogue/gpu/add/", GPU).status_code == 403


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("name", "NVIDIA A100-SXM4-80GB"), ("memory_gib", "0"), ("memory_gib", "NaN"),
     ("memory_gib", "1e999"), ("tflops", "-1"), ("tflops", "9" * 400), ("bandwidth_gb_s", "fast"),
     ("link", "string")],
)  # fmt: skip
def test_a_wrong_figure_is_told_at_its_field_and_the_others_kept(
    field: str, value: str, admin_browser: Client
) -> None:
    answer = admin_browser.post("/catalogue/gpu/add/", GPU | {field: value})
    assert answer.status_code == 400
    assert list(answer.context["gpu_form"].errors) == [field]
    assert 'value="Exotic-9000"' in answer.content.decode() or field == "name"
    assert not CatalogEntry.objects.exists()


def test_a_model_is_added_from_a_folder_or_its_pasted_config(
    admin_browser: Client, tmp_path: Path, settings: Any
) -> None:
    settings.MODEL_ROOTS = [tmp_path]
    (tmp_path / "config.json").write_text(json.dumps(SHAPE), encoding="utf-8")
    admin_browser.post("/catalogue/model/add/", {"name": "our/one", "place": str(tmp_path)})
    shown = admin_browser.post(
        "/catalogue/model/add/", {"name": "our/two", "config": json.dumps(SHAPE)}, follow=True
    ).content.decode()
    assert "1.2 B parameters, llama, 16 layers of width 2,048" in shown
    assert [portal_catalogue().model(name).layers for name in ("our/one", "our/two")] == [
        16,
        16,
    ]
    offered = admin_browser.get("/jobs/new/").content.decode()
    assert '<option value="our/two">' in offered


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"place": "", "config": ""}, "place"),
        ({"place": "/tmp", "config": "{}"}, "place"),
        ({"place": "/nowhere/\x00"}, "place"),
        ({"place": "/etc"}, "place"),
        ({"place": "knowledge/../portal"}, "place"),
        ({"config": "{"}, "config"),
        ({"config": "[]"}, "config"),
        ({"config": "[" * 100_000}, "config"),
        ({"config": "{}"}, "config"),
        ({"config": json.dumps(SHAPE | {"hidden_size": "2048"})}, "config"),
        ({"config": json.dumps(SHAPE | {"num_attention_heads": 0})}, "config"),
        ({"config": json.dumps(SHAPE | {"vocab_size": 10**400})}, "config"),
        ({"config": json.dumps(SHAPE | {"head_dim": -1})}, "config"),
        ({"name": "random/ours", "config": json.dumps(SHAPE)}, "name"),
        ({"name": "meta-llama/Llama-3.1-8B", "config": json.dumps(SHAPE)}, "name"),
    ],
)
def test_a_model_that_cannot_be_added_is_told_at_its_field(
    form: dict[str, str], field: str, admin_browser: Client
) -> None:
    answer = admin_browser.post("/catalogue/model/add/", {"name": "our/model", **form})
    assert answer.status_code == 400
    assert list(answer.context["model_form"].errors) == [field]
    assert not CatalogEntry.objects.exists()


def test_a_program_adds_a_gpu_and_a_model(admin_api: APIClient, api: APIClient) -> None:
    made = admin_api.post("/api/gpus/", GPU, format="json")
    assert (made.status_code, made.json()) == (201, GPU)
    assert api.get("/api/gpus/").json()["data"][0] == GPU
    again = admin_api.post("/api/gpus/", GPU | {"tflops": 310.0}, format="json")
    assert again.json()["tflops"] == 310
    assert CatalogEntry.objects.count() == 1, "the same name replaces the figures"
    model = admin_api.post("/api/models/", {"name": "our/model", "config": SHAPE}, format="json")
    assert (model.status_code, model.json()["id"]) == (201, "our/model")
    assert api.get("/api/models/").json()["data"][0]["id"] == "our/model"


def test_the_same_key_and_body_add_once(admin_api: APIClient) -> None:
    for _ in range(2):
        assert admin_api.post("/api/gpus/", GPU, format="json", HTTP_IDEMPOTENCY_KEY="k").status_code == 201
    assert AuditEntry.objects.filter(action__startswith="catalogue entry").count() == 1


@pytest.mark.parametrize("path", ["/api/gpus/", "/api/models/"])
def test_only_administrators_add(path: str, api: APIClient) -> None:
    assert api.post(path, GPU, format="json").status_code == 403
    assert api.get(path).status_code == 200


@pytest.mark.parametrize(
    ("path", "wrong", "field"),
    [
        ("gpus", {"memory_gib": "64"}, "memory_gib"),
        ("gpus", {"memory_gib": 0}, "memory_gib"),
        ("gpus", {"tflops": 1e300}, "tflops"),
        ("gpus", {"link": "memory"}, "link"),
        ("gpus", {"speed": 1}, "speed"),
        ("gpus", {"name": "T4"}, "name"),
        ("models", {"config": {}}, "config"),
        ("models", {"config": "{}"}, "config"),
        ("models", {}, "config"),
        ("models", {"config": SHAPE, "place": "/tmp"}, "config"),
        ("models", {"place": "/" + "x" * 400}, "place"),
    ],
)
def test_a_wrong_value_is_named(
    path: str, wrong: dict[str, object], field: str, admin_api: APIClient
) -> None:
    body = (GPU if path == "gpus" else {"name": "our/model"}) | wrong
    refused = admin_api.post(f"/api/{path}/", body, format="json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field])
    assert not CatalogEntry.objects.exists()
