"""Profiling runs: who needs one, what it costs, and what is known after it."""

from __future__ import annotations

from scheduler.simulator.world.predictions import Fidelity
from tests.scheduler.simulator.worlds import finishes, job, play


def test_an_unknown_job_is_measured_first_and_begins_anew() -> None:
    jobs = [job("long", runs_s=1000), job("short", 10, runs_s=50)]
    engine = play(jobs, "gpu:1x1", "lucid", level=Fidelity.EXACT, profile_s=200)
    assert finishes(engine) == {"long": 1250, "short": 250}
    long = engine.runs["long"]
    assert (long.restarts, long.preemptions, long.lost_gpu_s, long.attained_gpu_s) == (1, 0, 200, 1200)


def test_a_job_that_ends_within_its_profiling_run_is_done() -> None:
    engine = play([job("short", runs_s=50)], "gpu:1x1", "lucid", level=Fidelity.EXACT, profile_s=200)
    assert finishes(engine) == {"short": 50}


def test_a_kind_that_ran_twice_needs_none() -> None:
    jobs = [job(f"j{n}", 2000.0 * n, runs_s=500, user="u", model="m") for n in range(3)]
    engine = play(jobs, "gpu:1x1", "lucid", level=Fidelity.EXACT, profile_s=200)
    assert [run.restarts for run in engine.runs.values()] == [1, 1, 0]
    neighbours = play(
        [*jobs[:2], job("new", 4000, runs_s=500, user="u", model="new")],
        "gpu:1x1", "lucid", level=Fidelity.NEIGHBOURS, profile_s=200,
    )  # fmt: skip
    assert neighbours.runs["new"].restarts == 0


def test_preemptive_policies_profile_too() -> None:
    jobs = [job("long", runs_s=1000), job("short", 10, runs_s=50)]
    engine = play(jobs, "gpu:1x1", "tiresias", level=Fidelity.EXACT, profile_s=200)
    assert all(finishes(engine).values())
