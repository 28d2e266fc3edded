"""Check my configuration: does it fit, and which smallest change makes it fit?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client
from rest_framework.test import APIClient

from scheduler.models import DatasetFile
from tests.harness import world

URL = "/api/recommendations/check/"
TOO_LARGE = {
    "tuning": "lora", "gpu_model": "A100-SXM4-80GB", "number_gpus": 1, "tokens_per_sample": 2048,
    "effective_batch_size": 128, "per_device_batch_size": 128,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _a100(db: None) -> None:
    world.fake_node(model="A100-SXM4-80GB", memory_bytes=80 << 30, slots=1)


@pytest.fixture
def request_of(data_file: DatasetFile) -> Callable[..., dict[str, object]]:
    return lambda **params: {
        "model": "llama3.1-8b", "training_file": data_file.pk, "params": {**TOO_LARGE, **params},
    }  # fmt: skip


def test_what_is_too_large_is_told_with_the_smallest_change(
    api: APIClient, request_of: Callable[..., dict[str, object]]
) -> None:
    answer = api.post(URL, request_of(), format="json").json()
    assert not answer["fits"]
    assert list(answer["changes"]) == ["per_device_batch_size"]
    assert answer["changes"]["per_device_batch_size"]["from"] == 128
    smaller = answer["changes"]["per_device_batch_size"]["to"]
    assert answer["option"]["config"]["per_device_batch_size"] == smaller < 128
    again = api.post(URL, request_of(per_device_batch_size=smaller), format="json").json()
    assert (again["fits"], again["changes"]) == (True, {})


def test_the_form_shows_the_change_and_its_button_makes_it_fit(
    browser: Client, data_file: DatasetFile
) -> None:
    query = {f"params-{name}": value for name, value in TOO_LARGE.items()}
    query |= {"model": "llama3.1-8b", "training_file": data_file.pk}
    shown = browser.get("/jobs/new/advice/", query).content.decode()
    assert "With the values you set, the job does not fit." in shown
    assert "Batch size per GPU: 128 →" in shown
    [fill] = re.findall(r'data-fill="([^"]*)">Apply this change', shown)
    fits = browser.get("/jobs/new/advice/", query | json.loads(unescape(fill))).content.decode()
    assert "What you fixed" not in fits
    assert "Chance to run" in fits


def test_nothing_is_said_where_nothing_was_fixed_or_everything_fits(
    browser: Client, data_file: DatasetFile
) -> None:
    query = {"model": "llama3.1-8b", "training_file": data_file.pk}
    for params in ({}, {"params-tuning": "lora"}):
        assert "What you fixed" not in browser.get("/jobs/new/advice/", query | params).content.decode()


def test_where_no_change_helps_it_is_said(api: APIClient, browser: Client, data_file: DatasetFile) -> None:
    body = {"model": "llama3.1-405b", "training_file": data_file.pk, "params": {"tuning": "full"}}
    answer = api.post(URL, body, format="json")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["fits"], answer.json()["option"]) == (False, None)
    query = {"model": "llama3.1-405b", "training_file": data_file.pk, "params-tuning": "full"}
    assert "No single change makes it fit" in browser.get("/jobs/new/advice/", query).content.decode()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"model": "llama9"}, "model"),
        ({"model": "some-one/unknown"}, "model"),
        ({"training_file": "file-none"}, "training_file"),
        ({"params": {"tuning": "magic"}}, "params.tuning"),
        ({"goal": "fastest"}, "goal"),
    ],
)
def test_a_wrong_value_is_named(
    values: dict[str, object], field: str, api: APIClient, request_of: Callable[..., dict[str, object]]
) -> None:
    refused = api.post(URL, request_of() | values, format="json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, [field])
