"""The quick way of asking a policy decides exactly what the whole state would have it decide."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cycle import Ranked
from scheduler.core.policies import POLICIES
from scheduler.core.simulator.deciders import can_stand
from scheduler.core.simulator.engine import Engine
from scheduler.core.simulator.trace import CapacityChange, TraceJob
from tests.scheduler.simulator.worlds import job, play

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
