"""The portal's catalogue: one value for a request, read before the core is asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command

from knowledge.catalogue.hf_config_reading import local_config
from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.config_space import refused
from knowledge.core.domain.types import Workload
from knowledge.importing.service import import_history
from knowledge.recommendations.recommender import Recommender
from knowledge.services import record_execution
from tests.knowledge.catalogue.test_additions import SHAPE
from tests.knowledge.conftest import DATA, LAPTOP, NOW, TINY
from tests.knowledge.importing.test_importing import text

pytestmark = pytest.mark.django_db
GPU = ("--memory-gib", "64", "--tflops", "300", "--bandwidth-gb-s", "2000")


@pytest.fixture
def folder(tmp_path: Path, settings: Any) -> str:
    """A small model's folder, below a listed root."""
    shape = {**SHAPE, "hidden_size": 256, "num_hidden_layers": 2, "intermediate_size": 512, "vocab_size": 512}
    (tmp_path / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    settings.MODEL_ROOTS = [tmp_path.parent]
    return str(tmp_path)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were looked at."""
    seen: list[str] = []

    def looking(name: str) -> Path | None:
        seen.append(name)
        return local_config(name)

    monkeypatch.setattr("knowledge.catalogue.portal_catalogue.local_config", looking)
    return seen


def test_it_is_the_same_value_until_an_entry_changes() -> None:
    before = portal_catalogue()
    assert portal_catalogue("llama3.1-8b") is before
    call_command("add_gpu", "Exotic-9000", *GPU)
    after = portal_catalogue()
    assert after.known_gpu("Exotic-9000")
    assert before.known_gpu("Exotic-9000") is None, "whoever holds the former value goes on with it"


def test_only_folders_that_a_caller_names_are_looked_at(folder: str, looks: list[str]) -> None:
    assert portal_catalogue().known_model(folder) is None
    assert not looks
    assert portal_catalogue(f"random/{folder}").model(folder).layers == 2
    assert looks == [folder]


def test_own_runs_of_a_model_in_a_folder_move_its_predictions(folder: str, looks: list[str]) -> None:
    def rate() -> float:
        best = Recommender.of(LAPTOP).recommend(model=folder, fixed={}, workload=DATA).best
        assert best is not None
        return best.tokens_per_second.value

    before = rate()
    best = Recommender.of(LAPTOP).recommend(model=folder, fixed={}, workload=DATA).best
    assert best is not None
    record_execution(
        attempt_id=uuid4(), config=best.config, status="ok", now=NOW, tokens_per_second=3 * before
    )
    assert 2 * before < rate() < 3 * before
    looks.clear()
    few = Workload(rows=10, lengths=((100, 10),))
    assert Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=few).best
    assert not looks, "own runs were read with their folders, once"


def test_a_folder_that_a_history_names_is_known(folder: str) -> None:
    line = f"{folder},lora,NVIDIA-A100-SXM4-80GB,2,512,4,ok,1e14"
    report = import_history(text=text(line), now=NOW)
    assert not report.unknown_models
    assert report.flagged == 1, "it is far above the hardware's peak, which only a known model tells"


def test_a_launch_rule_sees_the_model_of_a_folder(folder: str) -> None:
    mixture = {**SHAPE, "num_local_experts": 8, "num_experts_per_tok": 2, "model_type": "mixtral"}
    (Path(folder) / "config.json").write_text(json.dumps(mixture), encoding="utf-8")
    known = portal_catalogue(folder)
    config = replace(TINY, model_name=folder, tuning="qlora", gpu_model="A100-SXM4-80GB")
    assert refused(config, known)
    assert refused(config, portal_catalogue()) is None
