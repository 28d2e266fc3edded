"""Physics alone beside the peaks of our trainer that were measured on GPUs (docs/measurements)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.sources import registry
from knowledge.core.domain.arrays import Array
from tests.knowledge.conftest import CATALOGUE

FILE = Path(__file__).resolve().parents[4] / "docs" / "measurements" / "executions-h200.csv"


@pytest.fixture(scope="module")
def ratios() -> dict[str, Array]:
    """Predicted / measured of the runs in 16 bits, by tuning, of those with layer norms and of all."""
    rows = registry.parse(FILE.read_text(encoding="utf-8"), CATALOGUE)
    known = [row for row in rows if row.status == "ok" and row.config.precision != "float32"]
    c = columns([row.config for row in known], CATALOGUE, [row.padded_tokens for row in known])
    found = cost_model.memory(c).total / c.memory / [row.peak_memory_fraction for row in known]
    by_tuning = {
        tuning: found[[row.config.tuning == tuning for row in known]] for tuning in ("lora", "qlora", "full")
    }
    return {**by_tuning, "layer norms": found[c.family.among({"gpt_neox"})], "all": found}


@pytest.mark.parametrize(
    ("runs", "count", "median", "worst"),
    [
        ("full", 12, 0.015, 0.03),
        ("lora", 12, 0.03, 0.13),
        ("qlora", 13, 0.03, 0.13),
        ("layer norms", 5, 0.03, 0.13),
        ("all", 37, 0.02, 0.13),
    ],
)
def test_peaks_are_as_physics_says(
    ratios: dict[str, Array], runs: str, count: int, median: float, worst: float
) -> None:
    errors = np.abs(ratios[runs] - 1)
    assert len(errors) == count
    assert np.median(errors) < median
    assert errors.max() < worst
