"""Measures of a simulation against values computed by hand."""

from __future__ import annotations

import pytest

from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.trace import CapacityChange
from scheduler.simulator.metrics import Metrics, lives, mean_active, measure
from tests.scheduler.simulator.worlds import finishes, job, play


def measured(engine: Engine) -> Metrics:
    runs = list(engine.runs.values())
    return measure(engine, runs, [run.job.duration_s or 0.0 for run in runs])


def test_two_jobs_in_turn() -> None:
    jobs = [job("a", gpus=4, runs_s=10, user="x"), job("b", gpus=4, runs_s=20, user="y", deadline_s=25)]
    found = measured(play(jobs))
    assert (found.jct_mean_s, found.wait_mean_s, found.makespan_s) == (20, 5, 30)
    assert found.slowdown_mean == pytest.approx((1.0 + 1.5) / 2)
    assert (found.utilisation, found.goodput) == (1.0, 1.0)
    assert (found.tardiness_mean_s, found.violation_ratio) == (5, 1)
    assert found.jain == pytest.approx((1 + 2 / 3) ** 2 / (2 * (1 + 4 / 9)))
    assert found.gpu_hours == pytest.approx(120 / 3600)


def test_finish_time_fairness_compares_with_an_equal_share_of_the_cluster() -> None:
    # both want all 4 GPUs for 10 s; with two jobs about, an equal share takes 20 s
    found = measured(play([job("a", gpus=4, runs_s=10), job("b", gpus=4, runs_s=10)]))
    assert found.finish_time_fairness_mean == pytest.approx((10 / 20 + 20 / 15) / 2)
    assert found.unfair_ratio == 0.5


def test_fairness_compares_each_job_with_the_fluid_user_fair_system() -> None:
    # UWFQ's example: the fluid system ends J3 at 4, J2 at 7, J4 at 11 and J1 at 17 s
    arrivals = [("J1", 0, 10, "A"), ("J2", 0, 2, "A"), ("J3", 0, 2, "B"), ("J4", 5, 3, "C")]
    jobs = [job(name, at, gpus=4, runs_s=runs_s, user=user) for name, at, runs_s, user in arrivals]
    engine = play(jobs, policy="fifo-strict")
    assert finishes(engine) == {"J1": 10, "J2": 12, "J3": 14, "J4": 17}
    found = measured(engine)
    assert found.fair_violation == pytest.approx(((12 - 7) / 7 + (14 - 4) / 4 + (17 - 11) / (11 - 5)) / 3)
    assert found.fair_slack == pytest.approx((10 - 17) / 17)
    assert found.fair_violation_ratio == 0.75


def test_the_mean_number_of_active_jobs_is_over_each_jobs_life() -> None:
    engine = play([job("a", gpus=4, runs_s=10), job("b", gpus=4, runs_s=10)])
    assert list(mean_active(lives(list(engine.runs.values()), [10, 10]))) == [2.0, 1.5]


def test_capacity_that_was_away_was_not_offered() -> None:
    away = (CapacityChange(50, "gpu-1", 0), CapacityChange(150, "gpu-1", 1))
    found = measured(play([job("a", runs_s=100)], "gpu:1x1", capacity=away))
    assert found.makespan_s == 200
    assert found.utilisation == pytest.approx(1.0)


def test_restarts_lower_goodput_but_not_utilisation() -> None:
    jobs = [job("long", gpus=4, runs_s=100), job("short", at=10, gpus=4, runs_s=10)]
    found = measured(play(jobs, policy="srtf", round_s=0, restart_s=10))
    assert found.utilisation == pytest.approx(1.0)
    assert found.goodput < 1.0 or found.preemptions == 0
