"""Runs judged by one another: none is predicted from itself or its likes."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config, GpuPool
from knowledge.core.evaluate import cross_validation
from knowledge.core.evaluate.cross_validation import leave_one_out_errors
from knowledge.core.evaluate.experiment_design import candidates, choose_experiments
from knowledge.core.predict.predictor import LearnedPredictor
from tests.knowledge.conftest import CATALOGUE

CPU = GpuPool(
    gpu_model="cpu", node_sizes=(1,), memory_bytes=8 * 2**30, peak_flops=6e10, bandwidth_bytes_s=1e10
)
PHYSICS = LearnedPredictor(knowledge={}, catalogue=CATALOGUE)
OFF = 1.5  # how much faster than predicted everything runs here


def ran(configs: list[Config], factor: float = OFF) -> list[Measurement]:
    rates = PHYSICS.score(configs, columns(configs, CATALOGUE)).rate
    return [
        Measurement(config=config, status="ok", source="own", tokens_per_second=float(factor * rate))
        for config, rate in zip(configs, rates, strict=True)
    ]


@pytest.fixture(scope="module")
def runs() -> list[Measurement]:
    return ran(
        choose_experiments(
            candidates(["builtin/tiny-llama", "builtin/tiny-qwen"], CPU, CATALOGUE), PHYSICS, 12
        )
    )


def test_every_run_is_judged_and_a_fault_that_all_share_is_taken_out_of_each(runs: list[Measurement]) -> None:
    found = leave_one_out_errors(PHYSICS, [], runs)
    assert found.before == pytest.approx([np.log(OFF)] * 12)
    assert len(found.after) == 12
    assert median(found.after) < 0.25 * np.log(OFF)


def test_a_run_does_not_predict_itself_nor_its_repeats(runs: list[Measurement]) -> None:
    alone = leave_one_out_errors(PHYSICS, [], [runs[0]] * 3)
    assert alone.after == alone.before == pytest.approx([np.log(OFF)] * 3)


def test_earlier_runs_count_before_and_after_unless_they_repeat_the_one_predicted(
    runs: list[Measurement],
) -> None:
    knowing = leave_one_out_errors(PHYSICS, runs[4:], runs[:4])
    assert max(knowing.before) < np.log(OFF)
    assert leave_one_out_errors(PHYSICS, runs[:1], runs[:1]).before == pytest.approx([np.log(OFF)])


def test_a_wild_run_spoils_its_own_judgement_and_hardly_that_of_others(runs: list[Measurement]) -> None:
    wild = replace(runs[0], tokens_per_second=(runs[0].tokens_per_second or 0.0) / 20)
    found = leave_one_out_errors(PHYSICS, [], [wild, *runs[1:]])
    assert sum(error > np.log(OFF) for error in found.after) == 1
    assert median(found.after) < 0.5 * np.log(OFF)


def test_more_configurations_than_parts_are_left_out_several_at_once_and_each_once(
    runs: list[Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_validation, "PARTS", 5)
    names = [str(number) for number in range(12)]
    parts = list(cross_validation.fold_names([*names, "0"]))
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert {len(part) for part in parts} == {2, 3}
    assert len(leave_one_out_errors(PHYSICS, [], runs).after) == 12
