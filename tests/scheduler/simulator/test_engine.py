"""The simulated cluster in time, on traces small enough to be followed by hand."""

from __future__ import annotations

import weakref
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import Shares
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import GpuSite
from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob
from scheduler.simulator.world.ground_truth import RecordedTruth, Throughput
from scheduler.simulator.world.interference import Colocation, across_nodes
from scheduler.simulator.world.predictions import Fidelity
from tests.harness.environment import examples
from tests.scheduler.simulator.worlds import finishes, job, play


def test_jobs_queue_for_gpus_and_finish_when_their_time_has_run() -> None:
    engine = play([job("a", gpus=4, runs_s=10), job("b", at=1, gpus=4, runs_s=20)])
    assert finishes(engine) == {"a": 10, "b": 30}


def test_a_job_starts_on_gpus_that_were_freed_at_the_moment_it_arrives() -> None:
    engine = play([job("a", gpus=4, runs_s=10), job("b", at=10, gpus=4, runs_s=5)])
    assert finishes(engine)["b"] == 15


def test_a_preempted_job_keeps_its_progress_and_pays_its_restart() -> None:
    long, short = job("long", gpus=4, runs_s=1000), job("short", at=100, gpus=4, runs_s=60)
    engine = play([long, short], policy="srtf", round_s=0, restart_s=30)
    assert finishes(engine)["short"] == 160
    assert finishes(engine)["long"] == pytest.approx(1000 + 60 + 30)
    run = engine.runs["long"]
    assert (run.preemptions, run.restarts) == (1, 1)
    assert run.attained_gpu_s == pytest.approx(4 * 1030)
    assert run.lost_gpu_s == pytest.approx(4 * 30)


def test_rounds_begin_as_in_the_live_loop() -> None:
    """The first event begins one; who comes meanwhile waits for the next; an empty cluster has none."""
    times = {"first": 10, "meanwhile": 20, "at-the-end": 70, "last": 90, "after": 400.5}
    engine = play([job(name, at=at, runs_s=5) for name, at in times.items()], policy="las")
    starts = {name: run.first_start for name, run in engine.runs.items()}
    assert starts == {"first": 10, "meanwhile": 70, "at-the-end": 70, "last": 130, "after": 400.5}


@pytest.mark.parametrize(("checkpoint_s", "finish"), [(0.0, 120.0), (30.0, 130.0), (1000.0, 190.0)])
def test_a_failed_node_costs_the_work_since_the_last_checkpoint(checkpoint_s: float, finish: float) -> None:
    away = (CapacityChange(70, "gpu-1", 0), CapacityChange(90, "gpu-1", 1))
    engine = play([job("a", runs_s=100)], "gpu:1x1", capacity=away, checkpoint_s=checkpoint_s)
    assert finishes(engine)["a"] == pytest.approx(finish)
    assert engine.runs["a"].restarts == 1
    assert engine.runs["a"].preemptions == 0


def test_a_pool_that_shrinks_loses_its_last_nodes() -> None:
    shrinks = (CapacityChange(50, "gpu", 1),)
    engine = play([job("a", runs_s=100), job("b", runs_s=100)], "gpu:2x1", capacity=shrinks)
    assert finishes(engine) == {"a": 100, "b": 150}


def test_multi_node_jobs_that_meet_slow_each_other_down_until_one_leaves() -> None:
    jobs = [job("a", gpus=2, nodes=2, runs_s=100), job("b", gpus=2, nodes=2, runs_s=50)]
    engine = play(jobs, "gpu:2x2", colocation=Colocation(across_nodes(0.5)))
    assert finishes(engine) == {"b": 100, "a": 150}


class _SlowApart(RecordedTruth):
    def kept_at(self, job: TraceJob, option: Option, level: TopologyLevel) -> float:
        return 1.0 if level >= TopologyLevel.NUMA else 0.5


def test_gpus_that_lie_apart_slow_a_job_down_and_who_requires_close_ones_waits() -> None:
    """Of each of two pairs one GPU is free from 30 on, the other from 100 on."""
    pairs = tuple(GpuSite(socket=0, numa=index // 2, switch=index) for index in range(4))
    cluster = Cluster((NodeGroup("gpu", 1, 4, sites=pairs),))
    held = [job(f"held-{number}", runs_s=runs_s) for number, runs_s in enumerate((30, 100, 30, 100))]
    any_two = job("new", at=1, gpus=2, runs_s=50)
    close = replace(any_two, topology="guaranteed", topology_level="numa")
    ends = [finishes(play([*held, new], cluster, truth=_SlowApart()))["new"] for new in (any_two, close)]
    assert ends == [130, 150]


def test_a_level_that_is_no_level_is_refused_with_its_words() -> None:
    assert "one of node, socket" in (job("a", topology="guaranteed", topology_level="rack").problem() or "")
    assert "which need it" in (job("a", topology="guaranteed").problem() or "")
    assert job("a", topology="automatic").problem() is None


class _OnlyTheBigPoolRuns(RecordedTruth):
    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        return None if option.gpu_model == "small" else super().pace(job, option, shares, done)

    def fails_after_s(self, job: TraceJob, option: Option) -> float:
        return 7.0


def test_an_option_that_does_not_run_costs_its_time_and_the_next_one_is_tried() -> None:
    truth = _OnlyTheBigPoolRuns()
    engine = play([job("a", runs_s=100)], "small:1x1,big:1x1", truth=truth, level=Fidelity.DEFAULT)
    assert finishes(engine)["a"] == 107
    assert engine.runs["a"].failures == 1
    assert engine.runs["a"].lost_gpu_s == 7


def test_who_knows_what_runs_does_not_try_what_fails() -> None:
    truth = _OnlyTheBigPoolRuns()
    engine = play([job("a", runs_s=100)], "small:1x1,big:1x1", truth=truth, level=Fidelity.VALIDITY)
    assert finishes(engine)["a"] == 100


def test_cost_is_gpu_hours_at_the_pools_price() -> None:
    engine = play([job("a", gpus=2, runs_s=1800)], "gpu:1x2@3.5")
    assert engine.runs["a"].cost == pytest.approx(3.5)


_rows = st.tuples(st.integers(0, 300), st.sampled_from([1, 2, 4, 8]), st.integers(1, 400))


@pytest.mark.parametrize("policy", sorted(SIMULATED))
@given(rows=st.lists(_rows, min_size=1, max_size=12))
@settings(max_examples=examples(12), deadline=None)
def test_under_every_policy_work_is_conserved_and_no_gpu_serves_two(
    policy: str, rows: list[tuple[int, int, int]]
) -> None:
    jobs = [job(f"j{n}", at, gpus=gpus, runs_s=runs_s) for n, (at, gpus, runs_s) in enumerate(rows)]
    engine = play(jobs, "gpu:2x4", policy, restart_s=5)  # taking a held GPU raises PolicyBroke
    assert engine.open == 0
    assert engine.machines.free_gpus == 8
    for run in engine.runs.values():
        assert run.finished is not None
        useful_s = (run.attained_gpu_s - run.lost_gpu_s) / run.job.whole_gpus
        assert useful_s == pytest.approx(run.job.duration_s, rel=1e-6)


@pytest.mark.parametrize("policy", sorted(SIMULATED))
def test_equal_inputs_give_equal_simulations(policy: str) -> None:
    jobs = [job(f"j{n}", at=7 * n, gpus=1 + n % 4, runs_s=50 + 31 * (n % 5)) for n in range(20)]
    assert finishes(play(jobs, "gpu:2x4", policy)) == finishes(play(jobs, "gpu:2x4", policy))


@pytest.mark.parametrize("policy", ["fifo", "easy", "las", "gavel"])
def test_a_simulation_that_is_over_is_freed_without_a_search_for_garbage(policy: str) -> None:
    engine = play([job("a"), job("b", at=1)], policy=policy)
    left = weakref.ref(engine)
    del engine
    assert left() is None
