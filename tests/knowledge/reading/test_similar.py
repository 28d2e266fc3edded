"""Similarity of jobs and durations by neighbours: the worked numbers."""

from __future__ import annotations

import pytest

from knowledge.reading.similar import (
    SIMILAR,
    differences,
    duration_by_neighbours,
    similarities,
    tokens,
    weighted_median,
)

A = {
    "base_model": "llama-3.1-8b", "tuning": "lora", "dataset": "faq", "optimizer": "adamw",
    "precision": "bf16", "tokens_per_sample": 2048, "effective_batch_size": 16, "number_gpus": 1,
    "learning_rate": 2e-4,
}  # fmt: skip
B = {**A, "effective_batch_size": 32, "learning_rate": 1e-4}
C = {
    **A, "tuning": "full", "tokens_per_sample": 4096, "effective_batch_size": 64, "number_gpus": 8,
    "learning_rate": 1e-5,
}  # fmt: skip
D = {
    **A, "base_model": "qwen2.5-0.5b", "tuning": "full", "dataset": "code", "precision": "fp32",
    "tokens_per_sample": 512, "effective_batch_size": 8, "learning_rate": 1e-5,
}  # fmt: skip
QUERY = {**A, "effective_batch_size": 32}


def test_four_past_jobs() -> None:
    (found,) = similarities([QUERY], [A, B, C, D])
    assert [round(one, 4) for one in found] == [0.8056, 0.8056, 0.2751, 0.1139]
    assert [one >= SIMILAR for one in found] == [True, True, False, False]
    assert differences(QUERY, A) == [("effective_batch_size", 32, 16)]


def test_work_and_place_are_compared() -> None:
    here = {**A, "rows": 720_000, "epochs": 1, "steps": 45_000, "gpu_model": "L40S"}
    there = {**here, "epochs": 4.0, "steps": 180_000, "gpu_model": "A100"}
    assert differences(here, there) == [
        ("gpu_model", "L40S", "A100"), ("epochs", 1, 4.0), ("steps", 45_000, 180_000),
    ]  # fmt: skip
    assert differences(here, {**here, "epochs": 1.0}) == []
    assert similarities([here], [there, here]) == [pytest.approx([1.0, 1.0])]  # they train the same


@pytest.mark.parametrize("past", [[], [{}], [{"seed": 3}]])
def test_nothing_is_like_what_is_not_known(past: list[dict[str, object]]) -> None:
    assert similarities([QUERY], past) == [[0.0] * len(past)]
    assert similarities([{}], [A]) == [[0.0]]


def test_odd_values_are_no_properties() -> None:
    assert tokens({"learning_rate": -1, "number_gpus": True, "tokens_per_sample": "4k", "tuning": ""}) == []


def test_the_weighted_median() -> None:
    assert weighted_median([(3600, 0.95), (4100, 0.90), (9000, 0.82)]) == 4100
    assert weighted_median([(3600, 0.95), (9000, 0.82)]) == 3600


def test_a_duration_by_neighbours_corrects_the_prediction() -> None:
    near = [(3600.0, 3000.0, 0.95), (4400.0, 4000.0, 0.9), (9000.0, 3000.0, 0.82), (1.0, 1.0, 0.7)]
    assert duration_by_neighbours(1000.0, near) == 1200.0
    assert duration_by_neighbours(1000.0, near[2:]) is None
