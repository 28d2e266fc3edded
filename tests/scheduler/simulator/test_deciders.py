"""One walk decides for a live tick and for the simulator: what a plain one decides over the whole state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.domain.types import Option
from scheduler.core.cycle.cycle import acceptable
from scheduler.core.cycle.options import HeadOfLine
from scheduler.core.cycle.ranked import Ranked, RankedQueue
from scheduler.core.placement.fit import FreeGpus, Shares
from scheduler.core.policies.parameters import with_parameters
from scheduler.core.types import ClusterState, Plan, Policy, Start, Topology, Wait
from scheduler.simulator.baselines import SIMULATED
from scheduler.simulator.engine import Engine
from scheduler.simulator.inputs.trace import CapacityChange, TraceJob
from scheduler.simulator.policy_drivers import HaltingDriver, Snapshots
from scheduler.simulator.world.ground_truth import GroundTruth, RecordedTruth, Throughput, table_rates
from scheduler.simulator.world.predictions import Fidelity
from tests.harness.environment import examples
from tests.harness.sampling import mostly_on_demand
from tests.scheduler.core import clusters
from tests.scheduler.simulator.worlds import finishes, job, play

RANKED = {name: policy for name, policy in SIMULATED.items() if isinstance(policy, Ranked)}
# One that reserves is held to a decision over the whole state below, and to a textbook's elsewhere.
PATIENT = sorted(name for name, policy in RANKED.items() if not policy.preempts and not policy.reserves)
HALTING = sorted(name for name, policy in RANKED.items() if policy.halts)
INCREMENTAL = sorted(name for name in PATIENT if RANKED[name].incremental)


@dataclass(frozen=True)
class Plain:
    """A ranking policy that stops nobody, as plainly as it can be said; `policy` lends key and rules."""

    policy: Ranked
    name: str = "plain"
    preempts: bool = False
    rules: None = None
    round_s: float | None = None
    description: Any = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        key, rules = self.policy.key, self.policy.rules
        free = FreeGpus(state.nodes, rules.placement)
        started: list[Start] = []
        withheld: set[str] = set()  # GPU models that a job further ahead waits for
        nodes: frozenset[str] = frozenset()  # the same, where only some nodes of a model suit it
        for one in sorted(
            state.waiting, key=lambda job: (-job.priority, key(job, now), job.submitted_at, job.id)
        ):
            options = () if one.hold else acceptable(one, free, rules)
            for option in options:
                kept_off = replace(one, avoids=one.avoids | nodes) if nodes else one
                gpus = None if option.gpu_model in withheld else free.place(option, kept_off)
                if gpus:
                    free.take(option, gpus)
                    started.append(Start(one.id, option, gpus))
                    break
            else:
                if state.kept_off(one) or one.topology is Topology.GUARANTEED:
                    continue  # GPUs that it does not take, or that lie too far apart, do not lie idle for it
                if options and rules.blocks is HeadOfLine.ALL:
                    withheld = set(free.pools)
                elif rules.blocks is HeadOfLine.MODELS:
                    for option in options:
                        suited = {
                            node.id
                            for node in state.nodes
                            if node.ready and node.gpu_model == option.gpu_model and node.suits(option)
                        }
                        others = any(
                            node.ready and node.gpu_model == option.gpu_model and node.id not in suited
                            for node in state.nodes
                        )
                        if others:
                            nodes |= suited
                        else:
                            withheld.add(option.gpu_model)
        return Plan(tuple(started), state.memory)


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


def test_the_policies_that_large_traces_need_are_incremental() -> None:
    assert {"fifo", "fifo-strict", "fifo-distributed", "sjf", "lucid"} <= set(INCREMENTAL)


@pytest.mark.parametrize("policy", PATIENT)
@given(state=clusters.cluster_states())
@settings(max_examples=examples(60), deadline=None)
def test_a_live_tick_starts_what_the_plain_walk_starts(policy: str, state: ClusterState) -> None:
    decided = SIMULATED[policy].decide(state, 0.0).actions
    plain = Plain(RANKED[policy]).decide(state, 0.0).actions
    assert tuple(action for action in decided if isinstance(action, Start)) == plain
    assert SIMULATED[policy].decide(replace(state, explain=False), 0.0).actions == plain


@pytest.mark.parametrize("policy", INCREMENTAL)
@given(jobs=_traces(), nodes_go=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_a_queue_that_is_kept_gives_jobs_the_lives_that_the_plain_walk_gives(
    policy: str, jobs: list[TraceJob], nodes_go: bool
) -> None:
    lose = (CapacityChange(60, "a", 1), CapacityChange(120, "a", 2)) if nodes_go else ()
    kept = play(jobs, "a:2x4,b:1x8", policy, capacity=lose, checkpoint_s=10)
    plain = play(jobs, "a:2x4,b:1x8", Plain(RANKED[policy]), capacity=lose, checkpoint_s=10)
    assert _lives(kept) == _lives(plain)


@dataclass(frozen=True)
class Asked:
    """A policy of which the simulator knows nothing, so that it shows the whole state at each decision."""

    policy: Policy
    name: str = "asked"
    preempts: bool = False
    rules: None = None
    round_s: float | None = None
    description: Any = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        return self.policy.decide(state, now)


@pytest.mark.parametrize("name", ["easy", "sjf", "lucid"])
@pytest.mark.parametrize("error", [0.0, 1.0])
@given(jobs=_traces())
@settings(max_examples=examples(60), deadline=None)
def test_a_reservation_with_a_queue_that_is_kept_decides_as_over_the_whole_state(
    name: str, error: float, jobs: list[TraceJob]
) -> None:
    policy = SIMULATED[name] if name == "easy" else with_parameters(SIMULATED[name], {"reserve": True})
    changes = (CapacityChange(60, "a", 1), CapacityChange(120, "a", 2))
    known = {"level": Fidelity.PERFORMANCE, "error": error, "capacity": changes, "checkpoint_s": 10}
    kept = play(jobs, "a:2x4,b:1x8", policy, **known)
    plain = play(jobs, "a:2x4,b:1x8", Asked(policy), **known)
    assert (kept.queue is None, plain.queue is None) == (False, True)
    assert _lives(kept) == _lives(plain)


@pytest.mark.parametrize("policy", mostly_on_demand(HALTING, ["srtf"]))
@given(jobs=_traces(), long=st.sampled_from([1.0, 10.0, 100.0]), restart_s=st.sampled_from([0.0, 20.0]))
@settings(max_examples=100, deadline=None)
def test_a_policy_that_is_not_asked_at_a_standstill_decides_as_over_the_whole_state(
    policy: str, jobs: list[TraceJob], long: float, restart_s: float
) -> None:
    jobs = [replace(one, duration_s=(one.duration_s or 0.0) * long) for one in jobs]
    changes = (CapacityChange(60, "a", 1), CapacityChange(120, "a", 2))
    known = {"restart_s": restart_s, "capacity": changes, "checkpoint_s": 10, "round_s": 60.0}
    halting = play(jobs, "a:2x4,b:1x8", policy, **known)
    plain = play(jobs, "a:2x4,b:1x8", Asked(SIMULATED[policy]), **known)
    assert (type(halting.decider), type(plain.decider)) == (HaltingDriver, Snapshots)
    assert _lives(halting) == _lives(plain)


def test_a_queue_that_is_kept_says_each_time_why_a_job_waits() -> None:
    full = clusters.node("n", 0, total=1)
    state = ClusterState(jobs=(clusters.job("a", clusters.option()),), nodes=(full,))
    queue = RankedQueue(RANKED["fifo"], state, 0.0)
    assert all(isinstance(action, Wait) for now in (0.0, 1.0) for action in queue.decide(now))
    assert len(queue.decide(2.0)) == 1


RATES = [{"profile": "m", "gpu_type": kind, "gpus": gpus, "rate": rate}
        for kind, rate in (("a", 3.0), ("b", 1.0)) for gpus in ("4", "8")]  # fmt: skip


class Mixed(RecordedTruth):
    """Recorded durations, and measured rates for jobs that have none."""

    def pace(self, job: TraceJob, option: Option, shares: Shares, done: float) -> Throughput | None:
        measured = table_rates(RATES) if job.duration_s is None else super()
        return measured.pace(job, option, shares, done)

    def left_s(self, job: TraceJob, option: Option, shares: Shares, done: float = 0.0) -> float | None:
        return GroundTruth.left_s(self, job, option, shares, done)


@pytest.mark.parametrize("policy", [RANKED["fifo"], Plain(RANKED["fifo"])], ids=["kept", "plain"])
def test_with_two_pools_a_job_that_waits_for_one_does_not_hold_up_the_other(policy: Policy) -> None:
    # `m` runs three times as fast on `a`, so it waits for `a` although `b` is free
    jobs = [
        job("holds-a", gpus=4, runs_s=100, gpu_type="a", profile="x"),
        job("waits-for-a", 1, gpus=4, runs_s=None, profile="m", work=300.0),
        job("on-b", 2, gpus=4, runs_s=50, gpu_type="b", profile="x"),
        job("behind-on-a", 3, gpus=4, runs_s=10, gpu_type="a", profile="x"),
    ]  # fmt: skip
    engine = play(jobs, "a:1x4,b:1x4", policy, truth=Mixed())
    assert finishes(engine) == pytest.approx(
        {"holds-a": 100, "waits-for-a": 200, "on-b": 52, "behind-on-a": 210}
    )
