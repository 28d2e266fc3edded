"""The page of an import: contradictions with both sides, what the trainer cannot do, and whose it is."""

from __future__ import annotations

import html
import re
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from tests.knowledge.reading.test_manifest import zipped

FILES = {
    "train.py": b"from trl import DPOTrainer\nDPOTrainer(model='acme/base-8b').train()\n",
    "a.yaml": b"learning_rate: 3e-5\nnum_train_epochs: 3\nmax_steps: 500\n",
    "b.yaml": b"learning_rate: 1e-4\n",
}
COMMAND = "python train.py --config a.yaml --config b.yaml --lora_r 8"


def sent(browser: Client) -> str:
    file = SimpleUploadedFile("a.zip", zipped(FILES))
    page = browser.post("/jobs/import/", {"upload": file, "command": COMMAND}).content.decode()
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def test_contradictions_show_both_sides_and_fill_neither(browser: Client, api: APIClient) -> None:
    text = sent(browser)
    for side in ("a.yaml, line 1", "b.yaml, line 1", "a.yaml, line 2", "a.yaml, line 3"):
        assert side in text
    file = SimpleUploadedFile("a.zip", zipped(FILES))
    answer = api.post("/api/imports/", {"file": file, "command": COMMAND}, format="multipart").json()
    assert {"learning_rate", "epochs+max_steps"} <= answer["contradictions"].keys()
    assert {one["value"] for one in answer["contradictions"]["learning_rate"]} == {3e-5, 1e-4}
    assert not {"learning_rate", "epochs", "max_steps"} & answer["job"]["parameters"].keys()
    assert answer["job"]["parameters"]["lora_r"] == 8


def test_what_the_trainer_cannot_do_is_named(browser: Client) -> None:
    assert re.search(r"The trainer of this portal cannot do: [^.]*\bdpo\b", sent(browser), re.I)


def test_parts_that_the_trainer_lacks_and_keys_that_nobody_knows_are_named(
    browser: Client, api: APIClient
) -> None:
    config = (
        b"base_model: a/b\nadapter: lora\ntrain_on_inputs: true\nlora_modules_to_save: [lm_head]\nlr_rte: 1\n"
    )
    command = "axolotl train c.yml"

    def file() -> SimpleUploadedFile:
        return SimpleUploadedFile("c.yml", config)

    answer = api.post("/api/imports/", {"file": file(), "command": command}, format="multipart").json()
    assert answer["unsupported"] == ["loss on prompts", "saved modules"]
    assert answer["unknown_keys"] == ["lr_rte"]
    assert api.get(f"/api/imports/{answer['id']}/").json()["unknown_keys"] == ["lr_rte"]
    page = browser.post("/jobs/import/", {"upload": file(), "command": command}).content.decode().lower()
    assert "cannot do: loss on prompts, saved modules" in page
    assert "1 key that the reader does not know" in page
    assert "lr_rte" in page


def test_schedules_and_values_of_the_optimiser_are_taken_over(api: APIClient) -> None:
    def imported(lines: str) -> Any:
        config = f"base_model: a/b\nadapter: lora\n{lines}".encode()
        file = SimpleUploadedFile("c.yml", config)
        command = "axolotl train c.yml"
        return api.post("/api/imports/", {"file": file, "command": command}, format="multipart").json()

    shares = (
        "lr_scheduler: cosine\nwarmup_ratio: 0.1\nweight_decay: 0.01\nadam_beta2: 0.95\nmax_grad_norm: 0.3\n"
    )
    answer = imported(shares)
    expected = {
        "lr_schedule": "cosine", "warmup_share": 0.1, "weight_decay": 0.01,
        "adam_beta2": 0.95, "clip_norm": 0.3,
    }  # fmt: skip
    assert expected.items() <= answer["job"]["parameters"].items()
    assert answer["unsupported"] == []
    answer = imported("lr_scheduler: constant_with_warmup\nwarmup_steps: 20\nadam_beta2: 0.5\n")
    assert answer["job"]["parameters"]["lr_schedule"] == "constant"
    assert not {"warmup_share", "adam_beta2"} & answer["job"]["parameters"].keys()
    answer = imported("lr_scheduler: one_cycle\nwarmup_steps: 0\n")
    assert answer["job"]["parameters"]["warmup_share"] == 0
    assert "lr_schedule" not in answer["job"]["parameters"]


def test_an_import_is_its_owners_alone(browser: Client, stranger: APIClient, api: APIClient) -> None:
    file = SimpleUploadedFile("a.zip", zipped(FILES))
    number = api.post("/api/imports/", {"file": file, "command": COMMAND}, format="multipart").json()["id"]
    assert browser.get(f"/jobs/import/{number}/").status_code == 200
    assert stranger.get(f"/api/imports/{number}/").status_code == 404
