"""Worked numbers of conformal intervals and of blending.

Blending combines own measurements with a prediction.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config
from knowledge.core.model import intervals
from knowledge.core.predict.exact_matches import ExactMatch, Observations
from knowledge.core.predict.gp_residual import ResidualPosterior
from tests.knowledge.conftest import CATALOGUE

RESIDUALS = [0.02, 0.03, 0.05, 0.06, 0.08, 0.10, 0.12, 0.15, 0.22]


def test_the_eighth_of_nine_residuals_bounds_80_percent() -> None:
    q = intervals.quantile(RESIDUALS, alpha=0.2)
    assert q == 0.15
    assert 3.0 * math.exp(-q) == pytest.approx(2.58, abs=0.005)
    assert 3.0 * math.exp(q) == pytest.approx(3.49, abs=0.005)


def test_too_few_residuals_leave_the_interval_unbounded() -> None:
    assert intervals.quantile(RESIDUALS, alpha=0.05) == math.inf
    assert intervals.quantile([], alpha=0.2) == math.inf


def test_kinds_with_twenty_residuals_get_their_own_width() -> None:
    residuals = np.array([0.1] * 20 + [0.5] * 5)
    widths = intervals.Widths.of(residuals, ["lora|A"] * 20 + ["full|A"] * 5)
    assert widths.look_up(["lora|A", "full|A", "full|B"]).tolist() == [0.1, widths.pooled, widths.pooled]


def test_a_gpu_with_few_runs_of_each_tuning_has_the_width_of_its_own_residuals() -> None:
    residuals = np.array([0.1] * 30 + [0.5] * 20 + [0.9] * 2)
    kinds, gpus = ["lora|A"] * 30 + [""] * 22, ["A"] * 30 + ["B"] * 20 + ["C"] * 2
    widths = intervals.Widths.of(residuals, kinds, gpus)
    found = widths.look_up(["lora|A", "lora|B", "lora|C"], ["A", "B", "C"])
    assert found.tolist() == [0.1, 0.5, widths.pooled]


def test_two_runs_move_a_wide_prior_most_of_the_way() -> None:
    errors = np.log(np.array([8200, 8600]) / 7000)
    found = ResidualPosterior.of(np.full((2, 2), 0.35**2), errors, np.full(2, 0.10**2), 0.10)
    other = np.full((1, 2), 0.35**2)
    assert 7000 * math.exp(found.mean(other)[0]) == pytest.approx(8338, abs=1)
    assert math.sqrt(0.35**2 - found.explained(other)[0]) == pytest.approx(0.0693, abs=0.0001)


def _row(rate: float | None, status: str = "ok") -> Measurement:
    config = Config(
        model_name="builtin/tiny-llama",
        tuning="lora",
        gpu_model="cpu",
        number_gpus=1,
        tokens_per_sample=256,
        per_device_batch_size=4,
    )
    return Measurement(config=config, status=status, source="own", tokens_per_second=rate)


def _repeat(seen: Observations, padded: float | None = None) -> ExactMatch | None:
    config = _row(None).config
    return seen.repeat(config, columns([config], CATALOGUE, [padded]), 0)


def test_repeats_answer_with_their_median_from_the_second_run_on() -> None:
    one, two = Observations.of([_row(900)], CATALOGUE), Observations.of([_row(900), _row(1100)], CATALOGUE)
    first, second = _repeat(one), _repeat(two)
    assert first is not None
    assert first.rate is None
    assert second is not None
    assert second.rate == 1000


def test_repeats_count_only_on_data_of_about_the_same_length() -> None:
    seen = Observations.of([_row(900), _row(1100)], CATALOGUE)
    assert _repeat(seen, padded=40.0) is None


def test_out_of_memory_is_remembered() -> None:
    seen = _repeat(Observations.of([_row(None, status="oom")], CATALOGUE))
    assert seen is not None
    assert (seen.runs, seen.out_of_memory) == (0, 1)
