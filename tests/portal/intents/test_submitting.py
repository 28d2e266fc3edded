"""Drafts of any sentence: the ordinary submission takes them, or says what their complaints said."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.apps import apps
from rest_framework.test import APIClient

from portal.accounts.models import User
from scheduler.models import DatasetFile, Job
from tests.harness import world
from tests.harness.environment import examples
from tests.portal.intents.test_hostile import WORDS

NEEDED = {"model", "training_file"}


def rows() -> dict[str, int]:
    """How many rows each table has."""
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


def sentence(seed: int) -> str:
    draw = random.Random(seed)
    wish = draw.choice(["", "builtin/tiny-llama on verses.jsonl, ", "phi-4 on the verses "])
    return (wish + " ".join(draw.choices(WORDS, k=draw.randint(1, 25))))[:1000]


@pytest.fixture
def verses(person: User) -> DatasetFile:
    return world.data_file(person, filename="verses.jsonl")


def test_a_draft_is_taken_or_was_complained_about(api: APIClient, verses: DatasetFile) -> None:
    world.fake_node(slots=8, model="A100-SXM4-80GB", memory_bytes=80 << 30)
    taken = refused = 0
    for seed in range(examples(60)):
        text = sentence(seed).replace("\u202e", "")
        before = rows()
        answer = api.post("/api/intents/", {"text": text}, format="json")
        assert answer.status_code == 200, (text, answer.content)
        assert rows() == before, text
        found = answer.json()
        submitted = api.post("/api/jobs/", found["draft"], format="json")
        if submitted.status_code == 201:
            taken += 1
            assert found["complaints"].keys() <= {"number_gpus", "number_nodes", "gpu_model"} | lost(found), (
                text
            )
            Job.objects.all().delete()
            continue
        assert submitted.status_code == 400, (text, submitted.content)
        refused += 1
        fields = {name.removeprefix("params.") for name in submitted.json()["error"]["fields"]}
        assert fields <= found["complaints"].keys() | (NEEDED - found["draft"].keys()), (text, found)
    assert taken
    assert refused


def lost(found: dict[str, Any]) -> set[str]:
    """Fields that a reader complained about and left empty: nothing of them is submitted."""
    draft = {**found["draft"], **found["draft"].get("params", {})}
    return set(found["complaints"]) - draft.keys()
