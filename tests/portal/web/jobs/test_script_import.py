"""The page that reads a training script, and the new job that begins with it."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.harness import world

pytestmark = pytest.mark.django_db
SCRIPT = b"""base_model: acme/base-8b
adapter: lora
lora_r: 24
lora_target_modules: [q_proj, k_proj, v_proj, o_proj]
learning_rate: 3e-5
micro_batch_size: 4
num_epochs: 2000
"""


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(world.user("ada"))
    return client


def test_a_configuration_becomes_the_beginning_of_a_job(browser: Client) -> None:
    file = SimpleUploadedFile("train.yml", SCRIPT)
    page = browser.post("/jobs/import/", {"upload": file, "command": "axolotl train train.yml --lora_r 8"})
    text = page.content.decode()
    assert "train.yml:5" in text
    assert "<code>learning_rate: 3e-5</code>" in text
    assert "instead of 24 in train.yml, line 3" in text
    assert "is not taken: 2000 must be between 0.001 and 1,000." in text
    assert re.search(r"Not stated: [^<]*Precision", text)
    link = re.search(r'href="(/jobs/new/\?script=[^"]+)"', text)
    assert link is not None
    form = browser.get(link[1]).context["form"]
    assert {
        name: form[name].value()
        for name in (
            "model",
            "params-tuning",
            "params-lora_r",
            "params-target_modules",
            "params-learning_rate",
        )
    } == {
        "model": "acme/base-8b",
        "params-tuning": "lora",
        "params-lora_r": 8,
        "params-target_modules": "attention",
        "params-learning_rate": 3e-5,
    }
    assert form["params-lora_r"].help_text.startswith("From the command.")
    assert form["params-learning_rate"].help_text.startswith("From train.yml, line 5.")
    assert form["params-per_device_batch_size"].value() is None  # where it runs is recommended


def test_a_script_as_text_is_shown_as_text(browser: Client) -> None:
    text = 'import os\nlr = 1e-4  # <script>alert(1)</script>\nos.system("rm")\n'
    page = browser.post("/jobs/import/", {"text": text})
    assert b"<script>alert" not in page.content
    assert b"&lt;script&gt;" in page.content


def test_a_batch_file_is_pasted_as_it_is(browser: Client) -> None:
    text = "@echo off\r\nset LR=3e-5\r\npython train.py ^\r\n  --learning_rate %LR%\r\n"
    page = browser.post("/jobs/import/", {"text": text}).content.decode()
    assert "script.bat:2" in page
    assert "<code>set LR=3e-5</code>" in page


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Choose a file, or paste a script or a command."),
        ({"upload": SimpleUploadedFile("a.rar", b"Rar!")}, "send a zip or tar.gz"),
        ({"command": "x" * 4_001}, "at most 4000"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_field(
    browser: Client, body: dict[str, object], message: str
) -> None:
    page = browser.post("/jobs/import/", body)
    assert page.status_code == 400
    assert message in page.content.decode()


@pytest.mark.parametrize("link", ["", "nonsense", "e30:1abc:xyz", "\x00"])
def test_links_of_others_fill_nothing(browser: Client, link: str) -> None:
    page = browser.get("/jobs/new/", {"script": link})
    assert page.status_code == 200
    assert page.context["form"]["model"].value() is None
