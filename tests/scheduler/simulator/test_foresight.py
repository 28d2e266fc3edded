"""What policies are told at each level of knowledge."""

from __future__ import annotations

import math
import statistics

import pytest

from knowledge.core.domain.types import Source
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.world.ground_truth import RateTruth, RecordedTruth, gavel_rates
from scheduler.simulator.world.predictions import STATED_DURATION_S, Fidelity, PredictionModel
from tests.scheduler.simulator.worlds import job

CLUSTER = parse_cluster("v100:2x4@2.0,k80:4x2@0.5")


def foresee(level: Fidelity, **rest: float) -> PredictionModel:
    return PredictionModel(level, RecordedTruth(), CLUSTER, **rest)  # type: ignore[arg-type]


def test_the_oracle_tells_the_truth_with_its_cost() -> None:
    option = foresee(Fidelity.ORACLE).options(job("a", gpus=4, runs_s=1800, gpu_type="v100"))[0]
    assert (option.duration_s.value, option.source) == (1800, Source.EXACT)
    assert option.cost.value == pytest.approx(4 * 0.5 * 2.0)


def test_without_knowledge_every_job_takes_the_stated_time() -> None:
    option = foresee(Fidelity.DEFAULT).options(job("a", runs_s=7))[0]
    assert (option.duration_s.value, option.source) == (STATED_DURATION_S, Source.DEFAULT)


def test_exact_knowledge_is_the_median_of_finished_runs_of_the_same_kind() -> None:
    foresight = foresee(Fidelity.EXACT)
    one = job("a", user="u", model="m", gpu_type="v100")
    option = foresight.options(one)[0]
    for duration_s in (10.0, 30.0, 20.0):
        foresight.learn(one, option, duration_s)
    assert foresight.options(job("b", user="u", model="m", gpu_type="v100"))[0].duration_s.value == 20
    stranger = job("c", user="other", model="m", gpu_type="v100")
    assert foresight.options(stranger)[0].duration_s.value == STATED_DURATION_S


def test_predictions_that_came_with_the_trace_are_used() -> None:
    told = job("a", runs_s=100, pred_duration_s=250)
    assert foresee(Fidelity.PERFORMANCE).options(told)[0].duration_s.value == 250


@pytest.mark.parametrize("error", [0.05, 0.2, 0.4])
def test_the_error_of_predictions_is_what_was_asked_for_and_repeats(error: float) -> None:
    foresight = foresee(Fidelity.PERFORMANCE, error=error, seed=3)
    jobs = [job(f"j{n}", runs_s=100, gpu_type="v100") for n in range(2_000)]
    factors = [foresight.options(one)[0].duration_s.value / 100 for one in jobs]
    assert factors == [foresight.options(one)[0].duration_s.value / 100 for one in jobs]
    assert statistics.median(abs(math.log(factor)) for factor in factors) == pytest.approx(
        math.log1p(error), rel=0.08
    )
    assert statistics.median(factors) == pytest.approx(1.0, abs=0.03)


def test_gangs_take_the_fewest_nodes_in_equal_parts() -> None:
    keys = {option.key for option in foresee(Fidelity.ORACLE).options(job("a", gpus=6))}
    assert keys == {"v100:2x3", "k80:3x2"}


def test_rates_of_a_table_say_where_a_job_runs_and_how_long() -> None:
    truth = gavel_rates({"v100": {"('LM (batch size 5)', 2)": {"null": 4.0, "('x', 1)": [1.0, 1.0]}}})
    assert truth == RateTruth({("LM (batch size 5)", "v100", 2): 4.0})
    foresight = PredictionModel(Fidelity.ORACLE, truth, CLUSTER)
    options = foresight.options(job("a", gpus=2, profile="LM (batch size 5)", work=400.0))
    assert [(option.key, option.duration_s.value) for option in options] == [("v100:1x2", 100.0)]
