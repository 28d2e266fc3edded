"""Predictions that policies get at each level of knowledge."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import Any

import pytest

from knowledge.core.domain.types import Goal, Option, Source
from scheduler.core.placement.fit import Shares
from scheduler.core.types import Topology
from scheduler.simulator.inputs.cluster import parse_cluster
from scheduler.simulator.inputs.trace import TraceJob
from scheduler.simulator.world.ground_truth import (
    GroundTruth,
    RateTruth,
    RecordedTruth,
    Throughput,
    gavel_rates,
)
from scheduler.simulator.world.predictions import STATED_DURATION_S, Fidelity, PredictionModel
from scheduler.simulator.world.runs import Run
from tests.scheduler.simulator.worlds import job

CLUSTER = parse_cluster("v100:2x4@2.0,k80:4x2@0.5")


def predicting(level: Fidelity, **rest: float) -> PredictionModel:
    return PredictionModel(level, RecordedTruth(), CLUSTER, **rest)  # type: ignore[arg-type]


def test_the_oracle_tells_the_truth_with_its_cost() -> None:
    option = predicting(Fidelity.ORACLE).options(job("a", gpus=4, runs_s=1800, gpu_type="v100"))[0]
    assert (option.duration_s.value, option.source) == (1800, Source.EXACT)
    assert option.cost.value == pytest.approx(4 * 0.5 * 2.0)


def test_without_knowledge_every_job_takes_the_stated_time() -> None:
    option = predicting(Fidelity.DEFAULT).options(job("a", runs_s=7))[0]
    assert (option.duration_s.value, option.source) == (STATED_DURATION_S, Source.DEFAULT)


def test_exact_knowledge_is_the_median_of_finished_runs_of_the_same_kind() -> None:
    predictions = predicting(Fidelity.EXACT)
    one = job("a", user="u", model="m", gpu_type="v100")
    option = predictions.options(one)[0]
    for duration_s in (10.0, 30.0, 20.0):
        predictions.learn(one, option, duration_s)
    assert predictions.options(job("b", user="u", model="m", gpu_type="v100"))[0].duration_s.value == 20
    stranger = job("c", user="other", model="m", gpu_type="v100")
    assert predictions.options(stranger)[0].duration_s.value == STATED_DURATION_S


def test_predictions_that_came_with_the_trace_are_used() -> None:
    reported = job("a", runs_s=100, pred_duration_s=250)
    assert predicting(Fidelity.PERFORMANCE).options(reported)[0].duration_s.value == 250


@pytest.mark.parametrize("error", [0.05, 0.2, 0.4])
def test_the_error_of_predictions_is_what_was_asked_for_and_repeats(error: float) -> None:
    predictions = predicting(Fidelity.PERFORMANCE, error=error, seed=3)
    jobs = [job(f"j{n}", runs_s=100, gpu_type="v100") for n in range(2_000)]
    factors = [predictions.options(one)[0].duration_s.value / 100 for one in jobs]
    assert factors == [predictions.options(one)[0].duration_s.value / 100 for one in jobs]
    assert statistics.median(abs(math.log(factor)) for factor in factors) == pytest.approx(
        math.log1p(error), rel=0.08
    )
    assert statistics.median(factors) == pytest.approx(1.0, abs=0.03)


class _SlowingDown(GroundTruth):
    """Half of the job in 50 s, the rest in 150 s."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput:
        return Throughput(0.01, 0.5) if done < 0.5 else Throughput(1 / 300)


def test_a_duration_is_the_sum_of_all_phases_and_a_rate_that_of_the_present_one() -> None:
    predictions = PredictionModel(Fidelity.ORACLE, _SlowingDown(), parse_cluster("v100:1x4"))
    for done, left_s, rate in ((0.0, 200.0, 1e4), (0.25, 175.0, 1e4), (0.5, 150.0, 1e6 / 300)):
        [option] = predictions.options(job("a"), done)
        assert (1 - done) * option.duration_s.value == pytest.approx(left_s)
        assert option.tokens_per_second.value == pytest.approx(rate)


def test_the_option_that_a_job_runs_with_says_what_is_left_in_each_phase() -> None:
    predictions = PredictionModel(Fidelity.ORACLE, _SlowingDown(), parse_cluster("v100:1x4"))
    run = Run(job("a"), predictions.options(job("a")))
    run.start(0.0, run.options[0], (("n", 0),), 0.0)
    run.done = 0.5
    run.tell(predictions.options(job("a"), 0.5))
    assert run.release(0.0).in_s == pytest.approx(150.0)


def test_a_job_with_bounds_stretches_over_what_was_measured() -> None:
    truth = RateTruth({("p", "v100", gpus): float(gpus) for gpus in (1, 2, 4)})
    at = {level: PredictionModel(level, truth, parse_cluster("v100:1x8")) for level in Fidelity}
    stretching, rigid = (
        job("a", gpus=2, profile="p", work=400.0, **bounds) for bounds in ({"min_gpus": 1, "max_gpus": 8}, {})
    )
    found = at[Fidelity.ORACLE].options(stretching)
    assert [(option.gpus, option.duration_s.value) for option in found] == [(4, 100), (2, 200), (1, 400)]
    assert [option.gpus for option in at[Fidelity.ORACLE].options(rigid)] == [2]
    assert [option.gpus for option in at[Fidelity.DEFAULT].options(stretching)] == [2]


def test_a_job_that_stretches_to_nothing_measured_has_what_it_asked_for() -> None:
    truth = RateTruth({("p", "v100", 3): 3.0})
    predictions = PredictionModel(Fidelity.ORACLE, truth, parse_cluster("v100:1x8"))
    [option] = predictions.options(job("a", profile="p", work=300.0, gpus=3, min_gpus=1, max_gpus=8))
    assert (option.gpus, option.duration_s.value) == (3, 100)


def test_gangs_take_the_fewest_nodes_in_equal_parts() -> None:
    keys = {option.key for option in predicting(Fidelity.ORACLE).options(job("a", gpus=6))}
    assert keys == {"v100:2x3", "k80:3x2"}


def test_rates_of_a_table_say_where_a_job_runs_and_how_long() -> None:
    truth = gavel_rates({"v100": {"('LM (batch size 5)', 2)": {"null": 4.0, "('x', 1)": [1.0, 1.0]}}})
    assert truth == RateTruth({("LM (batch size 5)", "v100", 2): 4.0})
    predictions = PredictionModel(Fidelity.ORACLE, truth, CLUSTER)
    options = predictions.options(job("a", gpus=2, profile="LM (batch size 5)", work=400.0))
    assert [(option.key, option.duration_s.value) for option in options] == [("v100:1x2", 100.0)]


def test_neighbours_are_the_owners_last_runs_else_the_groups_on_such_gpus() -> None:
    predictions = predicting(Fidelity.NEIGHBOURS)
    for model, duration_s in (("m", 3600.0), ("n", 4100.0), ("o", 9000.0)):
        past = job(model, user="u", model=model, gpu_type="v100")
        predictions.learn(past, predictions.options(past)[0], duration_s)
    option = predictions.options(job("b", user="u", model="new", gpu_type="v100"))[0]
    assert (option.duration_s.value, option.source) == (4100, Source.MODEL)
    colleague = predictions.options(job("c", user="v", model="new", gpu_type="v100"))[0]
    assert colleague.duration_s.value == 4100
    elsewhere = predictions.options(job("d", user="v", model="new", gpu_type="k80"))[0]
    assert elsewhere.source is Source.DEFAULT


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ({"weight": 2.0}, {"weight": 2.0}),
        ({"priority": 3}, {"priority": 3}),
        ({"preemptible": False}, {"preemptible": False, "borrows": False}),
        ({"deadline_s": 9.0}, {"due_at": 9.0, "spot": True}),
        ({"begin_s": 9.0}, {"begins_at": 9.0}),
        ({"array": "ten", "array_limit": 2}, {"array": "ten", "array_limit": 2}),
        ({"max_run_s": 9.0}, {"run_left_s": 9.0}),
        ({"topology": "guaranteed", "topology_level": "node"}, {"topology": Topology.GUARANTEED}),
        ({"goal": "fastest"}, {"goal": Goal.FASTEST}),
        ({"user": "ann", "group": "lab"}, {"user": "ann", "team": "lab"}),
    ],
)
def test_a_policy_sees_what_few_jobs_say(said: dict[str, Any], seen: dict[str, Any]) -> None:
    plain, other = (Run(one, ()).seen(0.0, Goal.BALANCED, 30.0, 0.0) for one in (job("a"), job("a", **said)))
    assert other == replace(plain, **seen)


def test_a_policy_sees_of_a_job_that_waits_again_what_it_saw_at_first_and_what_it_got() -> None:
    run = Run(job("a"), predicting(Fidelity.ORACLE).options(job("a")))
    before = run.seen(0.0, Goal.BALANCED, 30.0, 0.0)
    run.start(0.0, run.options[0], (("n", 0),), 0.0)
    run.advance(5.0, 0.0)
    run.stop(5.0)
    got: dict[str, Any] = {"attained_gpu_s": 5.0, "first_started_at": 0.0, "stopped_at": 5.0}
    assert run.seen(5.0, Goal.BALANCED, 30.0, 0.0) == replace(before, **got)
