"""Facts for names that the catalogue lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.domain.catalogue.fallback import gpu_like, model_like, nearest_catalogue, parameters_of
from tests.knowledge.conftest import CATALOGUE, GIB, TINY

NEAREST = nearest_catalogue(CATALOGUE)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("acme-7b-chat", 7e9),
        ("acme/smol-270M", 270e6),
        ("new-1.8b", 1.8e9),
        ("moe-8x7b", None),
        ("moe-7b-1b-active", 7e9),
        ("x", None),
    ],
)
def test_a_name_states_its_size(name: str, parameters: float | None) -> None:
    assert parameters_of(name) == pytest.approx(parameters)


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("acme/llama-9-8b-it", "meta-llama/Llama-3.1-8B"),
        ("mixtral-8x7b-acme", "mistralai/Mixtral-8x7B-v0.1"),
        ("nobody-20b", "ibm-granite/granite-20b-code-base-8k"),
    ],
)
def test_the_nearest_size_and_then_the_nearest_name_stand_in_for_a_model(name: str, alike: str) -> None:
    assert model_like(name, CATALOGUE).model_name == alike


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("NVIDIA H200 SXM 141GB rev. 2", "H200-SXM5-141GB"),
        ("NVIDIA GeForce RTX 5060 Ti 16GB", "RTX-5060-Ti"),
        ("ACME 1", "A100-SXM4-80GB"),
    ],
)
def test_the_nearest_name_stands_in_for_a_gpu_and_the_usual_one_where_none_is_near(
    name: str, alike: str
) -> None:
    assert gpu_like(name, CATALOGUE).gpu_model == alike


def test_borrowed_facts_keep_the_new_name_and_what_it_states() -> None:
    assert NEAREST.model("acme-7b").model_name == "acme-7b"
    assert NEAREST.gpu("ACME 1 96GB").memory_bytes == 96 * GIB
    assert NEAREST.known_model("random/acme-7b") == replace(NEAREST.model("acme-7b"), bytes_per_token=1.0)


def test_the_names_that_the_catalogue_lacks_are_told_with_what_answers_for_them() -> None:
    unknown = replace(TINY, model_name="acme-7b", gpu_model="ACME 1 96GB")
    assert NEAREST.borrowed(unknown).keys() == {"acme-7b", "ACME 1 96GB"}
    assert NEAREST.borrowed(TINY) == {}
