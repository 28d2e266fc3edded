"""Models and GPUs beyond the shipped catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.catalogue import UnknownModel
from knowledge.core.domain.types import GpuPool, Inventory, Source
from knowledge.recommendations.recommender import Recommender
from tests.knowledge.conftest import CLUSTER, DATA, GIB

pytestmark = pytest.mark.django_db
SHAPE = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "head_dim": 64,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with its config.json."""
    (tmp_path / "config.json").write_text(json.dumps(SHAPE), encoding="utf-8")
    return tmp_path


def test_a_model_in_a_folder_of_this_machine_is_predicted_by_its_sizes(folder: Path, settings: Any) -> None:
    settings.MODEL_ROOTS = [folder.parent]
    found = Recommender.of(CLUSTER).recommend(model=str(folder), fixed={}, workload=DATA)
    assert found.best.source is Source.PRIOR
    assert portal_catalogue(str(folder)).model(str(folder)).parameters == pytest.approx(1.236e9, rel=0.01)


def test_a_folder_outside_the_roots_is_not_read(folder: Path, tmp_path: Path, settings: Any) -> None:
    roots = tmp_path / "roots"
    (roots / "half").mkdir(parents=True)
    (roots / "link").symlink_to(folder)
    (roots / "half" / "config.json").symlink_to(folder / "config.json")
    settings.MODEL_ROOTS = [roots]
    for place in (folder, roots / "link", roots / "half", f"{roots}/..", "/dev/stdin"):
        with pytest.raises(UnknownModel):
            portal_catalogue(str(place)).model(str(place))


def test_an_added_model_is_known_by_its_name(folder: Path) -> None:
    call_command("add_model", str(folder), "--name", "our/model")
    assert portal_catalogue().model("our/model").layers == 16
    found = Recommender.of(CLUSTER).recommend(model="our/model", fixed={}, workload=DATA)
    assert found.best.tokens_per_second


def test_what_an_administrator_says_of_a_name_goes_before_what_its_likes_are(folder: Path) -> None:
    assert portal_catalogue().model("our/gpt2").layers == 12
    call_command("add_model", str(folder), "--name", "our/gpt2")
    assert portal_catalogue().model("our/gpt2").layers == 16


def test_sizes_under_the_names_of_their_family_are_sizes(tmp_path: Path) -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48, "vocab_size": 50257}
    (tmp_path / "config.json").write_text(json.dumps(gpt2), encoding="utf-8")
    call_command("add_model", str(tmp_path), "--name", "our/xl")
    assert portal_catalogue().model("our/xl").parameters == pytest.approx(1.557e9, rel=0.005)


def test_a_config_without_sizes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CommandError, match="lacks a size"):
        call_command("add_model", str(tmp_path))


def test_a_hub_that_cannot_be_reached_is_named_with_the_remedy(settings: Any) -> None:
    settings.HF_ENDPOINT = "http://127.0.0.1:9"
    with pytest.raises(CommandError, match="without internet, copy its"):
        call_command("add_model", "some-one/model")


def test_an_added_gpu_is_predicted_instead_of_answered_by_defaults() -> None:
    call_command(
        "add_gpu", "Exotic-9000", "--memory-gib", "64", "--tflops", "300", "--bandwidth-gb-s", "2000"
    )
    pool = GpuPool(gpu_model="Exotic-9000", node_sizes=(2,), memory_bytes=64 * GIB)
    found = Recommender.of(Inventory(pools=(pool,))).recommend(model="llama3.1-8b", fixed={}, workload=DATA)
    assert {option.source for option in found.options} == {Source.PRIOR}


def test_an_unknown_link_is_refused_with_the_known_ones() -> None:
    figures = ("--memory-gib", "64", "--tflops", "300", "--bandwidth-gb-s", "2000")
    with pytest.raises(CommandError, match="nvlink4"):
        call_command("add_gpu", "Exotic-9000", *figures, "--link", "string")
