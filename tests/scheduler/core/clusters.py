"""Jobs, nodes and random small clusters for tests of policies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from knowledge.core.domain.types import Config, Goal, Interval, Option, Source
from scheduler.core.types import Action, ClusterState, GpuId, GpuSite, Holding, JobInfo, NodeInfo, Topology
from scheduler.simulator.baselines import SIMULATED

MODELS = ("A100", "L40S")
LACKS = (frozenset[str](), frozenset[str](), frozenset({"qlora"}))
SITES = tuple(GpuSite(socket=i // 4, numa=i // 2, switch=i // 2) for i in range(8))

# Made once: Hypothesis examines a strategy whenever one is made, which took longer than to draw from it.
EITHER = st.booleans()
GPUS_OF_A_NODE = st.sampled_from([1, 2, 4, 8])
FREE_GPUS = {total: st.sets(st.integers(0, total - 1)) for total in (1, 2, 4, 8)}
MODEL = st.sampled_from(MODELS)
ABLE = st.sampled_from(LACKS)
ONE_IN_THREE = st.sampled_from([False, False, True])
DURATION_S = st.floats(10, 1e5)
STARTED_AT = st.sampled_from([-500.0, -120.0, -5.0])
ONLY_NODE = st.sampled_from([None, None, None, "n0"])
AVOIDS = st.sampled_from([frozenset[str](), frozenset[str](), frozenset({"n0"}), frozenset({"n1", "n2"})])
HOLD = st.sampled_from(["", "", "", "not yet"])
GOAL = st.sampled_from(list(Goal))
USER = st.sampled_from(["u", "v", "w"])
WEIGHT = st.sampled_from([1.0, 2.0])
PRIORITY = st.sampled_from([0, 0, 0, 0.5, 1])  # a fraction: moved to the front
DUE_AT = st.one_of(st.none(), st.floats(-10, 1e5))
WORK_LEFT = st.floats(0.01, 1.0)
ATTAINED_GPU_S = st.floats(0, 1e5)
STOPPED_AT = st.sampled_from([-400.0, -10.0])
RESTART_S = st.sampled_from([0.0, 30.0])
UNSAVED_S = st.sampled_from([0.0, 100.0])
TOPOLOGY = st.sampled_from(list(Topology))


def option(
    model: str = "A100", gpus: int = 1, nodes: int = 1, duration_s: float = 100.0, rate: float = 1000.0
) -> Option:
    config = Config(
        model_name="m", tuning="lora", gpu_model=model, number_gpus=gpus, number_nodes=nodes,
        tokens_per_sample=512, per_device_batch_size=1,
    )  # fmt: skip
    return Option(
        config=config, p_valid=0.99, tokens_per_second=Interval(rate), peak_memory_bytes=Interval(1e9),
        startup_s=10.0, duration_s=Interval(duration_s), cost=Interval(1.0), source=Source.MODEL,
    )  # fmt: skip


def by_qlora(of: Option) -> Option:
    """The option with a tuning that not every node can train."""
    return replace(of, config=replace(of.config, tuning="qlora", quantization="bnb-4bit"))


def job(name: str, *options: Option, at: float = 0.0, goal: Goal = Goal.FASTEST, **more: Any) -> JobInfo:
    return JobInfo(id=name, submitted_at=at, options=tuple(options), goal=goal, **more)


def running(
    name: str, held: Option, *gpus: GpuId, since: float = -1e6, at: float = -1e6, **more: Any
) -> JobInfo:
    """A job that has run long enough to be stopped, unless told otherwise."""
    holding = Holding(option=held, gpus=gpus, since=since)
    return job(name, held, at=at, holds=holding, first_started_at=since, **more)


def node(name: str, free: int, total: int | None = None, model: str = "A100", **more: Any) -> NodeInfo:
    """A node whose first `free` GPUs nobody holds."""
    return NodeInfo(id=name, gpu_model=model, total=total or free, free=tuple(range(free)), **more)


def decide(
    policy: str, jobs: list[JobInfo], nodes: list[NodeInfo], now: float = 0.0, **memory: Any
) -> dict[str, Action]:
    """The action of each job."""
    plan = SIMULATED[policy].decide(ClusterState(jobs=tuple(jobs), nodes=tuple(nodes), memory=memory), now)
    return {action.job: action for action in plan.actions}


@st.composite
def options(draw: st.DrawFn) -> Option:
    nodes = draw(st.integers(1, 2))
    per_node = draw(GPUS_OF_A_NODE)
    duration_s = draw(DURATION_S)
    return option(draw(MODEL), nodes * per_node, nodes, duration_s, 1e6 / duration_s)


OPTIONS = st.lists(options(), max_size=3)


def jobs(draw: st.DrawFn, name: str, **more: Any) -> JobInfo:
    ran = draw(EITHER)
    stopped_at = draw(STOPPED_AT) if ran and "holds" not in more else None
    own = more.pop("options", None) or tuple(draw(OPTIONS))
    if "holds" not in more and draw(ONE_IN_THREE):
        own = tuple(map(by_qlora, own))
    return JobInfo(
        id=name,
        submitted_at=float(draw(st.integers(-1000, 5))),
        options=own,
        goal=draw(GOAL),
        user=draw(USER),
        weight=draw(WEIGHT),
        priority=draw(PRIORITY),
        due_at=draw(DUE_AT),
        work_left=draw(WORK_LEFT),
        attained_gpu_s=draw(ATTAINED_GPU_S) if ran else 0.0,
        first_started_at=-500.0 if ran or "holds" in more else None,
        stopped_at=stopped_at,
        preempted_at=stopped_at if draw(EITHER) else None,
        restart_s=draw(RESTART_S),
        restarts=draw(st.integers(0, 3)),
        unsaved_s=draw(UNSAVED_S),
        topology=draw(TOPOLOGY),
        level=draw(st.integers(1, 3)),
        **more,
    )


@st.composite
def cluster_states(draw: st.DrawFn) -> ClusterState:
    """Draw clusters of up to 5 nodes with up to 8 waiting jobs.

    Held GPUs belong to running jobs or to no known job.
    """
    nodes: list[NodeInfo] = []
    found: list[JobInfo] = []
    for number in range(draw(st.integers(0, 5))):
        total = draw(GPUS_OF_A_NODE)
        free = draw(FREE_GPUS[total])
        model = draw(MODEL)
        ready = draw(EITHER) or draw(EITHER)
        sites = SITES[:total] if draw(EITHER) else ()
        nodes.append(
            NodeInfo(
                id=f"n{number}", gpu_model=model, total=total, free=tuple(sorted(free)),
                ready=ready, sites=sites, cannot_train=draw(ABLE),
            )
        )  # fmt: skip
        held = sorted(set(range(total)) - free)
        while held and draw(EITHER):
            size = draw(st.integers(1, len(held)))
            gpus, held = tuple((f"n{number}", index) for index in held[:size]), held[size:]
            own = option(model, size, duration_s=draw(DURATION_S))
            holding = Holding(option=own, gpus=gpus, since=draw(STARTED_AT))
            preemptible = not draw(ONE_IN_THREE)
            found.append(jobs(draw, f"r{len(found)}", options=(own,), holds=holding, preemptible=preemptible))
    for number in range(draw(st.integers(0, 8))):
        only_node = draw(ONLY_NODE)
        hold = draw(HOLD)
        found.append(jobs(draw, f"j{number}", only_node=only_node, hold=hold, avoids=draw(AVOIDS)))
    return ClusterState(jobs=tuple(found), nodes=tuple(nodes))
