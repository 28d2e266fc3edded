"""Facts for names that the catalogue lacks."""

from __future__ import annotations

import pytest

from knowledge.core.domain import catalogue
from knowledge.core.domain.catalogue_fallback import gpu_like, model_like, nearest_facts, parameters_of


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("acme-7b-chat", 7e9), ("acme/smol-270M", 270e6), ("new-1.8b", 1.8e9), ("moe-8x7b", None), ("x", None)],
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
    assert model_like(name).model_name == alike


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
    assert gpu_like(name).gpu_model == alike


def test_borrowed_facts_keep_the_new_name_and_what_it_states_and_are_given_back() -> None:
    with nearest_facts() as borrowed:
        assert catalogue.model("acme-7b").model_name == "acme-7b"
        assert catalogue.gpu("ACME 1 96GB").memory_bytes == 96 * catalogue.GIB
        assert set(borrowed.models | borrowed.gpus) == {"acme-7b", "ACME 1 96GB"}
    with pytest.raises(catalogue.UnknownModel):
        catalogue.model("acme-7b")
