"""The page of a new job before anything is sent: files and the recommendation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from knowledge.core.domain.types import Config
from knowledge.services import record_execution
from scheduler.models import DatasetFile, Node
from tests.harness import world


def recommendation(client: Client, file: DatasetFile, **values: Any) -> str:
    query = {"model": "builtin/tiny-llama", "training_file": file.pk, **values}
    answer = client.get("/jobs/new/advice/", query)
    assert answer.status_code == 200
    return answer.content.decode()


def refusals(page: str) -> dict[str, str]:
    """The errors at each field of the page, by the field's id."""
    reported = re.search(r'<script id="refused-values" type="application/json">(.*?)</script>', page)
    assert reported
    return {field: " ".join(messages) for field, messages in json.loads(reported[1]).items()}


def upload(client: Client, name: str, content: bytes) -> Any:
    return client.post("/jobs/new/upload/", {name: SimpleUploadedFile("rows.jsonl", content)})


@pytest.mark.parametrize(
    ("name", "field"), [("upload", "training_file"), ("validation_upload", "validation_file")]
)
def test_a_chosen_file_is_stored_at_once_and_reported_on(browser: Client, name: str, field: str) -> None:
    answer = upload(browser, name, world.training_lines(3))
    stored, page = DatasetFile.objects.get(), answer.content.decode()
    assert f'value="{stored.pk}" selected' in page
    assert f'name="{field}"' in page
    assert "3 rows" in page
    assert "What is 1 + 1?" in page
    assert answer["HX-Trigger-After-Settle"] == "file-stored"


def test_a_file_that_cannot_be_used_is_told_by_line(browser: Client) -> None:
    page = upload(browser, "upload", world.training_lines(2) + b"\n{bad\n{}").content.decode()
    assert "line 3" in page
    assert not DatasetFile.objects.exists()


def test_nothing_sent_is_told_in_words(browser: Client) -> None:
    assert b"No file arrived" in browser.post("/jobs/new/upload/").content


def test_texts_of_a_file_are_shown_as_plain_text(browser: Client) -> None:
    row = {"prompt": "<script>alert(1)</script>", "completion": "x" * 1000}
    page = upload(browser, "upload", json.dumps(row).encode()).content.decode()
    assert "<script>alert" not in page
    assert "x" * 301 not in page


def test_an_earlier_file_is_reported_on_when_it_is_chosen(browser: Client, data_file: DatasetFile) -> None:
    report = browser.get("/jobs/new/file/", {"training_file": data_file.pk}).content.decode()
    assert "20 rows" in report
    assert "Half of the rows" in report


@pytest.mark.parametrize("value", ["", "file-none", "a\x00b"])
def test_no_report_without_a_file_of_mine(browser: Client, value: str) -> None:
    assert browser.get("/jobs/new/file/", {"training_file": value}).content == b""
    foreign = world.data_file(world.user("eve"))
    assert browser.get("/jobs/new/file/", {"training_file": foreign.pk}).content == b""


def test_the_recommendation_is_shown_with_reasons(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node()
    shown = recommendation(browser, data_file)
    for expected in (
        "Peak memory per GPU",
        "Chance to run",
        "Learning rate",
        "Evidence",
        "Gradient clipping",
    ):
        assert expected in shown
    assert ">Cost" not in shown


def test_physics_that_a_run_here_corrected_is_no_longer_physics_alone(
    browser: Client, data_file: DatasetFile
) -> None:
    world.fake_node()
    assert "Predicted from physics alone" in recommendation(browser, data_file)
    ran = Config(
        model_name="builtin/tiny-llama",
        tuning="lora",
        gpu_model="cpu",
        number_gpus=1,
        tokens_per_sample=512,
        per_device_batch_size=2,
    )
    record_execution(attempt_id=uuid4(), config=ran, status="ok", tokens_per_second=900.0, now=timezone.now())
    page = recommendation(browser, data_file)
    assert "Predicted from physics, corrected by runs on cpu in this portal." in page
    assert "physics alone" not in page


def test_an_unknown_model_is_told_with_the_nearest(browser: Client, data_file: DatasetFile) -> None:
    refused = refusals(recommendation(browser, data_file, model="llama-banana"))
    assert "is not in the catalogue. Did you mean" in refused["id_model"]


@pytest.mark.parametrize("model", ["llama-banana", "/etc/passwd", "builtin/none", "../up"])
def test_a_base_model_that_cannot_be_loaded_is_refused_before_any_data_is_chosen(
    browser: Client, model: str
) -> None:
    page = browser.get("/jobs/new/advice/", {"model": model, "training_file": ""}).content.decode()
    assert list(refusals(page)) == ["id_model"]


def test_nothing_is_refused_in_an_empty_form(browser: Client) -> None:
    assert (
        refusals(browser.get("/jobs/new/advice/", {"model": "", "training_file": ""}).content.decode()) == {}
    )


def test_values_fixed_by_hand_stay_and_can_be_released(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node()
    shown = recommendation(browser, data_file, **{"params-lora_r": "4"})
    assert "unpin" in shown
    assert "{&quot;params-lora_r&quot;: &quot;&quot;}" in shown


def test_a_wrong_value_is_named_and_the_rest_still_recommended(
    browser: Client, data_file: DatasetFile
) -> None:
    world.fake_node()
    shown = recommendation(browser, data_file, **{"params-lora_r": "many"})
    assert refusals(shown) == {"id_params-lora_r": "Enter a whole number in the digits 0 to 9, e.g. 1000."}
    assert "Ignored until corrected: LoRA rank." in shown
    assert "Peak memory per GPU" in shown


def test_values_that_contradict_each_other_are_told(browser: Client, data_file: DatasetFile) -> None:
    shown = recommendation(browser, data_file, **{"params-epochs": "1", "params-max_steps": "5"})
    assert "give epochs or max_steps, not both" in refusals(shown)["id_params-max_steps"]
    assert "Parameters and reasons" in shown


def test_places_are_offered_and_stay_on_offer_when_one_is_fixed(
    browser: Client, data_file: DatasetFile
) -> None:
    world.fake_node(slots=2)
    figure = browser.get(
        "/jobs/new/advice/", {"model": "builtin/tiny-llama", "training_file": data_file.pk}
    ).context["tradeoff"]
    picks = [pick for trace in figure["data"] for pick in trace["customdata"]]
    assert {pick["params-number_gpus"] for pick in picks} == {"1", "2"}
    for pick in picks:
        shown = recommendation(browser, data_file, **pick)
        assert "You chose the GPUs yourself" in shown
        assert f"on {pick['params-number_gpus']} × cpu" in shown
        assert 'id="tradeoff"' in shown


def test_cost_is_predicted_where_nodes_have_a_price(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node()
    Node.objects.update(price_per_gpu_hour=2.0)
    assert "<dt>Cost</dt>" in recommendation(browser, data_file)


def test_a_deadline_or_budget_that_may_not_be_kept_is_told(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node()
    Node.objects.update(price_per_gpu_hour=2.0)
    soon = (timezone.now() + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M")
    shown = recommendation(
        browser, data_file, deadline_at=soon, budget="0.000001", **{"params-max_steps": "90000"}
    )
    assert "The deadline is in" in shown
    assert "once it has started" in shown
    assert "waits first" not in shown, "whether it waits is told by the start, which is asked for apart"
    assert "The budget is" in shown


@pytest.mark.parametrize(("goal", "field"), [("deadline", "deadline_at"), ("budget", "budget")])
def test_a_goal_without_its_limit_is_told_at_the_field_and_balanced_meanwhile(
    browser: Client, data_file: DatasetFile, goal: str, field: str
) -> None:
    world.fake_node(slots=2)
    shown = recommendation(browser, data_file, goal=goal)
    assert f"is needed for the goal {goal}" in refusals(shown)[f"id_{field}"]
    assert "Balanced until you enter the" in shown
    assert 'id="tradeoff"' in shown
    wrong = recommendation(browser, data_file, goal=goal, **{field: "nonsense"})
    assert list(refusals(wrong)) == [f"id_{field}"]
    assert "Balanced until you correct the" in wrong
    assert "Ignored until corrected: " in wrong
    assert 'id="tradeoff"' in wrong


@pytest.mark.parametrize("goal", ["deadline", "balanced"])
def test_a_deadline_that_has_passed_is_told_and_ignored(
    browser: Client, data_file: DatasetFile, goal: str
) -> None:
    world.fake_node(slots=2)
    past = (timezone.now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    shown = recommendation(browser, data_file, goal=goal, deadline_at=past)
    assert refusals(shown) == {"id_deadline_at": "must lie in the future"}
    assert "Ignored until corrected: Deadline." in shown
    assert "until you enter" not in shown
    assert ("Balanced until you correct the deadline" in shown) == (goal == "deadline")


def test_a_goal_with_its_limit_is_taken_up(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node()
    assert "Balanced until" not in recommendation(browser, data_file, goal="budget", budget="3")
    assert "Peak memory per GPU" in recommendation(browser, data_file, goal="budget", budget="3")


def test_a_goal_that_counts_money_without_any_price_says_what_it_means(
    browser: Client, data_file: DatasetFile, api: APIClient, body: Callable[..., dict[str, object]]
) -> None:
    world.fake_node()
    assert "needs the least GPU time" in recommendation(browser, data_file, goal="cheapest")
    assert "the fastest comes first" in recommendation(browser, data_file, goal="budget", budget="3")
    answer = api.post("/api/recommendations/", body(goal="cheapest"), format="json").json()["notes"]
    assert any("No node has a price" in note for note in answer)
    assert "No node has a price" not in recommendation(browser, data_file, goal="fastest")
    Node.objects.update(price_per_gpu_hour=2.0)
    assert "No node has a price" not in recommendation(browser, data_file, goal="cheapest")


def test_an_impossible_request_says_what_would_make_it_possible_and_what_sending_it_means(
    browser: Client, data_file: DatasetFile, api: APIClient, body: Callable[..., dict[str, object]]
) -> None:
    world.fake_node(memory_bytes=4 << 30)
    page = recommendation(browser, data_file, model="llama3.1-70b")
    alert = page.split('role="alert">')[1].split("</div>")[0]
    assert "No registered node can run this job." in alert
    assert "It would fit with a node with 1 × L40S by the tuning qlora in bfloat16." in alert
    assert "the job waits until a node that can run it joins" in alert
    assert "tokens_per_sample" not in alert
    assert "when a suitable node is free" not in page
    answer = api.post("/api/recommendations/", body(model="llama3.1-70b"), format="json").json()
    assert answer["notes"][0] in alert
    assert 'class="btn btn-outline-secondary" id="submit-job" aria-describedby="submit-meaning"' in page
    assert "Submitted now, it waits in the queue" in page


def test_a_request_that_fits_is_submitted_by_the_first_button(
    browser: Client, data_file: DatasetFile
) -> None:
    world.fake_node()
    page = recommendation(browser, data_file)
    assert 'class="btn btn-primary" id="submit-job"' in page
    assert "submit-meaning" not in page


def test_where_nothing_is_known_no_figures_are_shown(browser: Client, data_file: DatasetFile) -> None:
    world.fake_node(model="Exotic-9000", memory_bytes=64 << 30)
    page = recommendation(browser, data_file)
    assert "No prediction is possible. The job would run on 1 × Exotic-9000" in page
    assert "The GPU Exotic-9000 is not in the catalogue" in page
    assert "0.0 s" not in page
    assert "Alternatives" not in page
    job = world.job(data_file.owner, training_file=data_file)
    promised = browser.get(f"/jobs/{job.pk}/").content.decode()
    assert "Default settings; nothing was predicted." in promised
    assert "50%" not in promised


def test_the_memory_of_the_prediction_is_told_part_by_part(
    browser: Client, api: APIClient, data_file: DatasetFile
) -> None:
    world.fake_node(model="A100-SXM4-80GB", memory_bytes=80 << 30)
    page = recommendation(browser, data_file, model="llama3.1-8b")
    assert "Where the memory goes" in page
    for part in ("Weights", "Activations", "Overhead"):
        assert f">{part}</th>" in page
    assert "Changes that save memory" in page
    assert "Tuning: lora → qlora<br>Quantization: none → bnb-4bit</th>" in page
    # Samples so long that activations are more than what is summed up as all else.
    params = {"tuning": "full", "tokens_per_sample": 4096, "effective_batch_size": 16}
    body = {"model": "llama3.1-8b", "training_file": data_file.pk, "params": params}
    answer = api.post("/api/recommendations/", body, format="json").json()
    parts = answer["memory_parts"]
    assert {"weights", "gradients", "optimiser", "activations"} <= set(parts)
    # The trainer keeps weights that learn in float32, whatever it computes in (trainer/train/base/models.py).
    assert parts["weights"] == pytest.approx(
        8.03e9 * 4 / answer["options"][0]["config"]["number_gpus"], rel=0.2
    )
    peak = answer["options"][0]["peak_memory_bytes"]["value"]
    assert sum(parts.values()) == pytest.approx(peak, rel=0.03)
    saved = [saving["saved_bytes"] for saving in answer["memory_savings"]]
    assert peak > saved[0] > saved[-1] > 0
    assert answer["memory_savings"][0]["changes"] == {"tuning": {"from": "full", "to": "lora"}}
