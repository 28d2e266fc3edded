"""A tuning that a node cannot train.

The node reports it, jobs avoid the node, and everyone concerned is told why.
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
WITHOUT = {"qlora": "bitsandbytes is missing, install requirements/gpu.lock on it"}
WHY = f"No registered node can train qlora (gpu-1: {WITHOUT['qlora']})."
QLORA = {"model": "llama3.2-1b", "params": {"tuning": "qlora"}}


@pytest.fixture
def node(db: None) -> FakeNode:
    return world.fake_node(name="gpu-1", cannot_train=WITHOUT, **A100)


def submitted(owner_api: APIClient, data_file: DatasetFile) -> Job:
    made = owner_api.post("/api/jobs/", {**QLORA, "training_file": data_file.pk}, format="json")
    assert made.status_code == 201, made.content
    return Job.objects.get(pk=made.json()["id"])


def test_the_page_and_rest_say_what_a_node_trains(node: FakeNode, browser: Client, api: APIClient) -> None:
    shown = browser.get(f"/nodes/{node.node_id}/").content.decode()
    assert "full, lora</dd>" in shown
    assert f"Jobs with the tuning qlora go elsewhere: {WITHOUT['qlora']}." in shown
    assert api.get(f"/api/nodes/{node.node_id}/").json()["cannot_train"] == WITHOUT


def test_an_agent_that_says_nothing_is_given_every_tuning(
    api: APIClient, data_file: DatasetFile, browser: Client
) -> None:
    silent = world.fake_node(**A100)
    assert "full, lora, qlora</dd>" in browser.get(f"/nodes/{silent.node_id}/").content.decode()
    submitted(api, data_file)
    assert tick().started == 1


def test_a_waiting_job_says_what_is_missing_where_and_starts_once_it_is_installed(
    node: FakeNode, api: APIClient, data_file: DatasetFile
) -> None:
    job = submitted(api, data_file)
    assert job.notes[0].startswith(WHY)
    assert tick().started == 0
    job.refresh_from_db()
    assert (job.wait_code, job.wait_text) == (
        "no-option", f"{WHY} It starts as soon as a suitable node joins, or one of these can train it again."
    )  # fmt: skip
    node.sync(facts=facts(**A100))
    refresh_options()
    assert tick().started == 1


def test_of_two_nodes_with_one_kind_of_gpu_it_runs_on_the_one_that_can(
    node: FakeNode, api: APIClient, data_file: DatasetFile
) -> None:
    able = world.fake_node(name="gpu-2", **A100)
    first, second = submitted(api, data_file), submitted(api, data_file)
    assert tick().started == 1
    assert Claim.objects.get().node_id == able.node_id
    second.refresh_from_db()
    assert (second.wait_code, "Needs 1 A100" in second.wait_text) == ("busy", True)
    assert "GPU for qlora; 0 are free" in second.wait_text
    Job.objects.filter(pk=first.pk).update(binding=None)
    Node.objects.filter(pk=able.node_id).update(state="drained")
    tick()
    second.refresh_from_db()
    assert (second.wait_code, "no ready node offers that" in second.wait_text) == ("no-node", True)


def test_other_tunings_run_there_as_ever(node: FakeNode, api: APIClient, data_file: DatasetFile) -> None:
    body: dict[str, Any] = {"model": "llama3.2-1b", "training_file": data_file.pk}
    api.post("/api/jobs/", {**body, "params": {"tuning": "lora"}}, format="json")
    assert tick().started == 1


def test_checking_a_configuration_names_the_remedy_and_the_tuning_that_would_do(
    node: FakeNode, api: APIClient, data_file: DatasetFile
) -> None:
    request = {**QLORA, "training_file": data_file.pk}
    answer = api.post("/api/recommendations/check/", request, format="json").json()
    assert (answer["fits"], answer["changes"]) == (False, {"tuning": {"from": "qlora", "to": "lora"}})
    assert answer["reason"].startswith(f"{WHY} With tuning qlora → lora, its chance to run")


def test_a_calibration_leaves_out_what_the_node_cannot_train(node: FakeNode, admin_api: APIClient) -> None:
    body = {"budget_s": 3600, "models": ["random/llama3.2-1b"], "runs": 12}
    made = admin_api.post(f"/api/nodes/{node.node_id}/calibrations/", body, format="json")
    assert made.status_code == 201, made.content
    planned = Node.objects.get(pk=node.node_id).calibrations.get().plan
    assert {config["tuning"] for config in planned} == {"lora", "full"}


def test_what_is_no_table_of_tunings_is_named(node: FakeNode) -> None:
    said = {
        "protocol": PROTOCOL,
        "boot_id": "boot-1",
        "claims": [],
        "facts": facts(**A100, cannot_train=["qlora"]),
    }
    answer = node.post_sync(said)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "body.facts.cannot_train")
    assert Node.objects.get().cannot_train == WITHOUT
