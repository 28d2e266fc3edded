"""A standstill is found only where no action comes of a decision."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from scheduler.core.cycle.ranked import Ranked
from scheduler.core.cycle.standstill import LEAST_S, Standstill
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState, JobInfo, NodeInfo
from tests.scheduler.core import clusters
from tests.scheduler.core.clusters import job, node, option, running

HALTING = sorted(name for name, one in POLICIES.items() if isinstance(one, Ranked) and one.halts)
GANG = option(gpus=4)


def standstill(policy: str, state: ClusterState) -> Standstill:
    ranked = POLICIES[policy]
    assert isinstance(ranked, Ranked)
    found = Standstill(ranked, state.nodes)
    for one in state.waiting:
        found.add(one)
    return found


def at(state: ClusterState, received_s: float) -> ClusterState:
    """The state in which its running jobs have run for so much longer."""
    jobs = [
        replace(one, attained_gpu_s=one.attained_gpu_s + len(one.holds.gpus) * received_s)
        if one.holds
        else one
        for one in state.jobs
    ]
    return replace(state, jobs=tuple(jobs), explain=False)


def test_these_policies_halt() -> None:
    assert HALTING == ["las", "srtf"]


@pytest.mark.parametrize("policy", HALTING)
@given(state=clusters.cluster_states())
@settings(max_examples=300, deadline=None)
def test_nothing_comes_of_a_decision_at_a_standstill(policy: str, state: ClusterState) -> None:
    found = standstill(policy, state)
    for now in (0.0, LEAST_S / 2, LEAST_S, 2 * LEAST_S):
        seen = at(state, now)
        if found.holds(seen.running, now):
            assert POLICIES[policy].decide(seen, now).actions == ()


def held(name: str, at: str, indices: tuple[int, ...], attained_gpu_s: float) -> JobInfo:
    gpus = tuple((at, index) for index in indices)
    return running(name, option(gpus=len(gpus)), *gpus, attained_gpu_s=attained_gpu_s)


def full(*names: str) -> list[NodeInfo]:
    return [node(name, 0, total=4) for name in names]


def test_a_job_behind_makes_room_and_one_ahead_does_not() -> None:
    waiting = job("waiting", GANG, attained_gpu_s=1000.0)
    state = ClusterState(jobs=(waiting,), nodes=tuple(full("n")))
    for attained_gpu_s, stands in ((0.0, True), (2000.0, False)):
        found = standstill("las", state)
        assert found.holds([held("running", "n", (0, 1, 2, 3), attained_gpu_s)], 0.0) is stands


def test_gpus_behind_on_two_nodes_are_no_room_for_a_gang_on_one() -> None:
    holders = [held(name, name, (0, 1), 2000.0) for name in ("n", "m")]
    found = standstill("las", ClusterState(jobs=(job("waiting", GANG),), nodes=tuple(full("n", "m"))))
    assert found.holds(holders, 0.0)
    assert not found.holds([*holders, held("third", "n", (2, 3), 2000.0)], 3 * LEAST_S)


def test_running_jobs_are_not_looked_at_while_it_holds_for_sure() -> None:
    waiting = job("waiting", GANG, attained_gpu_s=1e6)
    found = standstill("las", ClusterState(jobs=(waiting,), nodes=tuple(full("n"))))
    behind, ahead = (held("running", "n", (0, 1, 2, 3), gpu_s) for gpu_s in (2e6, 0.0))
    assert found.holds([ahead], 0.0)
    assert found.holds([behind], LEAST_S / 2)
    assert not found.holds([behind], LEAST_S + 1)


def test_gpus_that_are_given_back_end_it() -> None:
    found = standstill("las", ClusterState(jobs=(job("waiting", GANG),), nodes=tuple(full("n"))))
    gpus = tuple(("n", index) for index in range(4))
    assert found.holds([], 0.0)
    found.give(GANG, gpus)
    assert not found.holds([], 0.0)
    found.remove("waiting")
    assert found.holds([], 0.0)
