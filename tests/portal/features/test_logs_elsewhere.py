"""The log of a run elsewhere: asked, and its speed kept until somebody confirms the configuration."""

from __future__ import annotations

import gzip
import pickle
import random
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from rest_framework.test import APIClient

from knowledge.models import Execution
from knowledge.reading.logs.elsewhere import read_log
from knowledge.services import MOST_UNCONFIRMED
from portal.accounts.models import Membership, Team, User
from tests.harness import hostile
from tests.harness.chat_server import Reply, chatting

BARS = "".join(f" {n}%|# | {n}/100 [00:{2 * n:02}<03:00, loss={4 - n / 40}]\n" for n in range(20))
RUN = {
    "model": "llama3.1-8b", "tuning": "lora", "gpu_model": "A100-SXM4-80GB", "number_gpus": 1,
    "tokens_per_sample": 512, "per_device_batch_size": 4, "gradient_accumulation_steps": 2,
}  # fmt: skip
RATE = 0.5 * 8 * 512


def upload(content: str | bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("run.log", content.encode() if isinstance(content, str) else content)


def sent(api: APIClient, content: str | bytes, **run: Any) -> Any:
    return api.post("/api/logs/", {"file": upload(content), **run}, format="multipart")


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("fsdp goes with full or lora in bfloat16 or float32; choose those, or ddp.", "do not go together"),
        ("the portal has lost inputs/train.jsonl: 404", "has lost a file"),
    ],
)
def test_a_reason_of_our_own_has_its_cause(api: APIClient, reason: str, cause: str) -> None:
    answer = sent(api, f"loading acme/x\n{reason}\n")
    assert cause in answer.content.decode()


def test_an_archive_is_no_log(api: APIClient) -> None:
    assert "no text" in sent(api, b"PK\x03\x04 of a zip").content.decode()


NO_TEXTS = {
    "an image": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 20,
    "weights": random.Random(5).randbytes(100_000),
    "bytes without a zero": bytes(random.Random(6).choices(range(1, 256), k=100_000)),
    "UTF-16": BARS.encode("utf-16"),
    "a gzip": gzip.compress(BARS.encode()),
    "an object": pickle.dumps({"loss": [1.0] * 100}),
    "lines and an image": BARS.encode() + b"\x89PNG\r\n\x1a\n\x00\x00",
}


@pytest.mark.parametrize("kind", NO_TEXTS)
def test_bytes_that_are_no_text_are_refused_at_both_doors(api: APIClient, browser: Client, kind: str) -> None:
    refused = sent(api, NO_TEXTS[kind])
    assert refused.status_code == 400
    assert "This is no text" in str(refused.json()["error"]["fields"]["file"])
    page = browser.post("/logs/", {"upload": upload(NO_TEXTS[kind])})
    assert page.status_code == 400
    assert "This is no text" in page.content.decode()


def test_a_few_bytes_of_another_encoding_hinder_nobody(api: APIClient, browser: Client) -> None:
    log = "Fortschritt für größere Läufe\n".encode("latin-1") + BARS.encode() + b"\xff\xfe\n"
    assert sent(api, log).json()["answers"]["How far is it?"]["text"].startswith("It came to step 19")
    assert "It came to step 19" in browser.post("/logs/", {"upload": upload(log)}).content.decode()


def test_a_log_answers_all_questions_and_keeps_nothing(api: APIClient) -> None:
    answer = sent(
        api, BARS + "Traceback (most recent call last):\nRuntimeError: CUDA out of memory.\n"
    ).json()
    assert answer["steps_per_s"] == pytest.approx(0.5)
    assert answer["answers"]["How far is it?"]["text"] == "It came to step 19 of 100, 19 %."
    assert answer["answers"]["How far is it?"]["lines"][0]["number"] == 20
    assert "more memory than its GPU has" in answer["answers"]["Why did it fail?"]["text"]
    assert answer["execution"] is None
    assert not Execution.objects.exists()


def test_a_kept_speed_is_learnt_from_once_an_administrator_confirms_it(
    api: APIClient, admin_api: APIClient
) -> None:
    kept = [sent(api, BARS, **RUN).json()["execution"] for _ in range(2)]
    assert kept[0] == kept[1]
    row = Execution.objects.get()
    assert (row.learn, row.tokens_per_second, row.source) == (False, pytest.approx(RATE), "log")
    path = f"/api/executions/exec-{row.pk}/confirm/"
    assert api.post(path).status_code == 403
    assert admin_api.post(path).json()["learn"] is True
    row.refresh_from_db()
    assert (row.learn, row.learn_validity, row.flag_reason) == (True, False, "")


def test_an_impossible_speed_stays_unlearnt(api: APIClient, admin_api: APIClient) -> None:
    fast = "".join(f"step {n}/9  loss 2.1000  99999999 tokens/s\n" for n in range(4))
    execution = sent(api, fast, **RUN).json()["execution"]
    answer = admin_api.post(f"/api/executions/{execution}/confirm/").json()
    assert answer["learn"] is False
    assert answer["flag_reason"]


@pytest.mark.parametrize(
    ("content", "run", "field"),
    [
        (b"\x00\x01" * 50, {}, "file"),
        ("x\n" * 1_000_001, {}, "file"),
        ("nothing of steps", RUN, "file"),
        (BARS, {"model": "llama3.1-8b"}, "tuning"),
        (BARS, {**RUN, "number_gpus": 0}, "number_gpus"),
        (BARS, {**RUN, "number_gpus": 30_000, "per_device_batch_size": 40_000}, "per_device_batch_size"),
        (BARS, {**RUN, "gradient_acumulation": 8}, "gradient_acumulation"),
        (BARS, {**RUN, "gpu_model": "Voodoo 2"}, "gpu_model"),
        (BARS, {**RUN, "model": "llama\u202e8b"}, "model"),
        (BARS, {**RUN, "model": "m" * 301}, "model"),
    ],
)
def test_bad_input_names_the_field(api: APIClient, content: Any, run: dict[str, Any], field: str) -> None:
    answer = sent(api, content, **run)
    assert answer.status_code == 400
    assert field in answer.json()["error"]["fields"]
    assert not Execution.objects.exists()


def test_a_person_keeps_so_many_logs_that_nobody_has_confirmed(
    api: APIClient, admin_api: APIClient, browser: Client
) -> None:
    for length in range(1, MOST_UNCONFIRMED + 1):
        sent(api, BARS, **{**RUN, "tokens_per_sample": length})
    assert sent(api, BARS, **{**RUN, "tokens_per_sample": 1}).status_code == 200  # kept already
    refused = sent(api, BARS, **RUN).json()["error"]["fields"]["file"]
    assert "of yours that waits" in str(refused)
    seal = re.search(r'name="log" value="([^"]+)"', browser.post("/logs/", {"text": BARS}).content.decode())
    assert seal
    assert "of yours that waits" in browser.post("/logs/", {**RUN, "log": seal[1]}).content.decode()
    assert sent(admin_api, BARS, **RUN).status_code == 200
    first = Execution.objects.earliest("pk")
    admin_api.post(f"/api/executions/exec-{first.pk}/confirm/")
    assert sent(api, BARS, **{**RUN, "tokens_per_sample": 99}).status_code == 200


@pytest.mark.parametrize("flood", ["\n" * 2_000_000, "x\n" * 1_000_000, "loss=2 [1/2](1/2)\n" * 110_000])
def test_a_flood_of_lines_costs_little(flood: str) -> None:
    with hostile.bounded(seconds=3):
        read_log(flood)


def test_a_language_model_is_asked_behind_the_doors_and_named(
    api: APIClient, browser: Client, person: User
) -> None:
    unknown = "".join(f"{n}s: fortschritt {n} von 500\n" for n in range(1, 30))
    Membership.objects.create(team=Team.objects.create(name="nlp", language_model=True), user=person)
    with (
        chatting(lambda _: Reply(hang=True)) as chat,
        override_settings(LANGUAGE_SERVERS={"reader": chat.server, "intent": None}),
    ):
        assert "is asked how the lines" in sent(api, unknown).json()["note"]
        page = browser.post("/logs/", {"text": unknown}).content.decode()
        assert f"{chat.server.host} is asked how the lines" in page
        assert f"are sent to the language model at {chat.server.host}" in page
        assert chat.asked == []
    assert sent(api, BARS).json()["note"] == ""


def test_the_page_reads_keeps_and_confirms(browser: Client, person: User) -> None:
    page = browser.post("/logs/", {"upload": upload(BARS + "<script>alert(1)</script>\n")})
    text = page.content.decode()
    assert "It came to step 19 of 100" in text
    assert "<script>alert" not in text
    seal = re.search(r'name="log" value="([^"]+)"', text)
    assert seal
    assert browser.post("/logs/", {**RUN, "log": seal[1]}).status_code == 302
    row = Execution.objects.get()
    assert row.tokens_per_second == pytest.approx(RATE)
    assert browser.post(f"/history/{row.pk}/confirm/").status_code == 403
    User.objects.filter(pk=person.pk).update(is_staff=True)
    assert "learn from it" in browser.get("/history/").content.decode()
    browser.post(f"/history/{row.pk}/confirm/")
    row.refresh_from_db()
    assert row.learn
    assert browser.post("/logs/", {**RUN, "log": "forged"}).status_code == 400
    large = browser.post(
        "/logs/", {**RUN, "log": seal[1], "per_device_batch_size": 1_000_000, "number_gpus": 9_999}
    )
    assert "effective batch above" in large.content.decode()
    assert "paste lines" in browser.post("/logs/", {}).content.decode()
