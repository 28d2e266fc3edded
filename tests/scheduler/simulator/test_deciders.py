"""The quick way of asking a policy decides exactly what the whole state would have it decide."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Option
from scheduler.core.cycle.cycle import Ranked
from scheduler.core.placement.fit import Shares
from scheduler.core.policies import POLICIES
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob
from scheduler.simulator.policy_drivers import can_stand
from scheduler.simulator.world.ground_truth import RecordedTruth, Throughput, table_rates
from tests.scheduler.simulator.worlds import finishes, job, play

QUICK = sorted(name for name, policy in POLICIES.items() if isinstance(policy, Ranked) and can_stand(policy))


def _lives(engine: Engine) -> list[tuple[object, ...]]:
    return [(name, run.first_start, run.finished, run.attained_gpu_s) for name, run in engine.runs.items()]


@st.composite
def _traces(draw: st.DrawFn) -> list[TraceJob]:
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 200), st.sampled_from([1, 1, 2, 3, 4, 8]), st.integers(1, 150),
                      st.sampled_from(["", "", "a", "b"]), st.integers(0, 1)),
            min_size=1, max_size=25,
        )
    )  # fmt: skip
    return [
        job(f"j{n:02}", at, gpus=gpus, runs_s=runs_s, gpu_type=gpu_type, priority=priority)
        for n, (at, gpus, runs_s, gpu_type, priority) in enumerate(rows)
    ]


def test_the_policies_that_large_traces_need_are_quick() -> None:
    assert {"fifo", "fifo-strict", "fifo-distributed", "sjf", "lucid"} <= set(QUICK)


@pytest.mark.parametrize("policy", QUICK)
@given(jobs=_traces())
@settings(max_examples=60, deadline=None)
def test_both_ways_of_asking_give_the_same_lives(policy: str, jobs: list[TraceJob]) -> None:
    lose = (CapacityChange(60, "a", 1), CapacityChange(120, "a", 2))
    quick = play(jobs, "a:2x4,b:1x8", policy, capacity=lose, checkpoint_s=10)
    whole = play(jobs, "a:2x4,b:1x8", policy, capacity=lose, checkpoint_s=10, snapshots=True)
    assert _lives(quick) == _lives(whole)


RATES = [{"profile": "m", "gpu_type": kind, "gpus": gpus, "rate": rate}
        for kind, rate in (("a", 3.0), ("b", 1.0)) for gpus in ("4", "8")]  # fmt: skip


class Mixed(RecordedTruth):
    """Recorded durations, and measured rates for jobs that have none."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        measured = table_rates(RATES) if job.duration_s is None else super()
        return measured.pace(job, option, shares, done)


@pytest.mark.parametrize("snapshots", [False, True])
def test_with_two_pools_a_job_that_waits_for_one_does_not_hold_up_the_other(snapshots: bool) -> None:
    # `m` runs three times as fast on `a`, so it waits for `a` although `b` is free
    jobs = [
        job("holds-a", gpus=4, runs_s=100, gpu_type="a", profile="x"),
        job("waits-for-a", 1, gpus=4, runs_s=None, profile="m", work=300.0),
        job("on-b", 2, gpus=4, runs_s=50, gpu_type="b", profile="x"),
        job("behind-on-a", 3, gpus=4, runs_s=10, gpu_type="a", profile="x"),
    ]  # fmt: skip
    engine = play(jobs, "a:1x4,b:1x4", "fifo", truth=Mixed(), snapshots=snapshots)
    assert finishes(engine) == pytest.approx(
        {"holds-a": 100, "waits-for-a": 200, "on-b": 52, "behind-on-a": 210}
    )
