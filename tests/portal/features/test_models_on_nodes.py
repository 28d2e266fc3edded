"""A base model of the hub that a node neither holds nor may download.

The node reports what it holds, jobs avoid it, and everyone concerned is told why before submitting.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Claim, DatasetFile, Job, Node
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts
from trainer.protocol import PROTOCOL

A100 = {"model": "A100-SXM4-80GB", "memory_bytes": 80 << 30, "slots": 1}
MODEL = "Qwen/Qwen2.5-0.5B"
WHY = (
    f"No node in service can load {MODEL}: gpu-1 does not hold it and may not download it. An administrator"
    f" starts the agent with --online, or puts the model into {MODEL} in its models folder."
)


@pytest.fixture
def node(db: None) -> FakeNode:
    return world.fake_node(name="gpu-1", held_models=["google/gemma-3-1b-it"], **A100)


def asked(data_file: DatasetFile, model: str = MODEL) -> dict[str, Any]:
    return {"model": model, "training_file": data_file.pk}


def submitted(api: APIClient, data_file: DatasetFile, model: str = MODEL) -> Job:
    made = api.post("/api/jobs/", asked(data_file, model), format="json")
    assert made.status_code == 201, made.content
    return Job.objects.get(pk=made.json()["id"])


def test_what_the_node_holds_is_shown(node: FakeNode, browser: Client, api: APIClient) -> None:
    shown = browser.get(f"/nodes/{node.node_id}/").content.decode()
    assert "It holds google/gemma-3-1b-it; jobs with other models go elsewhere." in shown
    assert api.get(f"/api/nodes/{node.node_id}/").json()["held_models"] == ["google/gemma-3-1b-it"]
    node.sync(facts=facts(**A100, held_models=[]))
    assert "It holds none" in browser.get(f"/nodes/{node.node_id}/").content.decode()
    node.sync(facts=facts(**A100))
    assert "may not download" not in browser.get(f"/nodes/{node.node_id}/").content.decode()
    assert api.get(f"/api/nodes/{node.node_id}/").json()["held_models"] is None


def test_it_is_told_before_submission_through_every_door(
    node: FakeNode, api: APIClient, browser: Client, data_file: DatasetFile
) -> None:
    recommendation = api.post("/api/recommendations/", asked(data_file), format="json").json()
    assert (recommendation["options"], recommendation["notes"][0]) == ([], WHY)
    recommendation = api.post("/api/recommendations/check/", asked(data_file), format="json").json()
    assert (recommendation["fits"], recommendation["reason"]) == (
        False,
        f"{WHY} No single change makes it fit here.",
    )
    page = browser.get("/jobs/new/advice/", asked(data_file)).content.decode()
    assert WHY in page
    assert "100 %" not in page


def test_models_that_lie_there_or_are_made_there_run(
    node: FakeNode, api: APIClient, data_file: DatasetFile
) -> None:
    submitted(api, data_file, "google/gemma-3-1b-it")
    assert tick().started == 1
    Job.objects.all().delete()
    submitted(api, data_file, "builtin/tiny-llama")
    assert tick().started == 1


def test_a_waiting_job_says_which_node_lacks_the_model_and_starts_once_it_is_there(
    node: FakeNode, api: APIClient, data_file: DatasetFile
) -> None:
    job = submitted(api, data_file)
    assert tick().started == 0
    job.refresh_from_db()
    assert (job.wait_code, job.wait_text.startswith(WHY)) == ("no-option", True)
    node.sync(facts=facts(**A100, held_models=[MODEL]))
    refresh_options()
    assert tick().started == 1


def test_of_two_nodes_it_runs_on_the_one_that_can_load_it(
    node: FakeNode, api: APIClient, data_file: DatasetFile
) -> None:
    online = world.fake_node(name="gpu-2", **A100)
    submitted(api, data_file)
    second = submitted(api, data_file)
    assert tick().started == 1
    assert Claim.objects.get().node_id == online.node_id
    second.refresh_from_db()
    assert second.wait_text.startswith("Needs 1 A100-SXM4-80GB GPU; 0 are free.")
    assert second.wait_text.endswith(f"gpu-1 cannot load {MODEL}.")
    Node.objects.filter(pk=online.node_id).update(state="drained")
    tick()
    second.refresh_from_db()
    assert second.wait_text == f"No ready node accepts it: gpu-1 cannot load {MODEL}."


def test_a_calibration_with_such_a_model_is_refused(node: FakeNode, admin_api: APIClient) -> None:
    body = {"budget_s": 3600, "models": [MODEL], "runs": 4}
    made = admin_api.post(f"/api/nodes/{node.node_id}/calibrations/", body, format="json")
    assert made.status_code == 400
    assert f"gpu-1 cannot load {MODEL}" in made.content.decode()


def test_what_is_no_list_of_models_is_named(node: FakeNode) -> None:
    for held in ({"a": "b"}, [1], ["m" * 301]):
        said = {
            "protocol": PROTOCOL,
            "boot_id": "boot-1",
            "claims": [],
            "facts": facts(**A100, held_models=held),
        }
        answer = node.post_sync(said)
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "body.facts.held_models")
    assert Node.objects.get().held_models == ["google/gemma-3-1b-it"]
