"""Random small clusters for properties of policies."""

from __future__ import annotations

from hypothesis import strategies as st

from knowledge.core.types import Config, Goal, Interval, Option, Source
from scheduler.core.types import ClusterState, Job, Node

MODELS = ("A100", "L40S")


def option(model: str = "A100", gpus: int = 1, nodes: int = 1, duration_s: float = 100.0) -> Option:
    config = Config(
        model_name="m", method="lora", gpu_model=model, number_gpus=gpus, number_nodes=nodes,
        tokens_per_sample=512, per_device_batch_size=1,
    )  # fmt: skip
    return Option(
        config=config, p_valid=0.99, tokens_per_second=Interval(1000.0), peak_memory_bytes=Interval(1e9),
        startup_s=10.0, duration_s=Interval(duration_s), cost=Interval(1.0), source=Source.MODEL,
    )  # fmt: skip


@st.composite
def options(draw: st.DrawFn) -> Option:
    nodes = draw(st.integers(1, 2))
    per_node = draw(st.sampled_from([1, 2, 4, 8]))
    return option(draw(st.sampled_from(MODELS)), nodes * per_node, nodes, draw(st.floats(10, 1e5)))


@st.composite
def cluster_states(draw: st.DrawFn) -> ClusterState:
    nodes = []
    for number in range(draw(st.integers(0, 5))):
        total = draw(st.sampled_from([1, 2, 4, 8]))
        free = draw(st.sets(st.integers(0, total - 1)))
        nodes.append(
            Node(
                id=f"n{number}",
                gpu_model=draw(st.sampled_from(MODELS)),
                total=total,
                free=tuple(sorted(free)),
                ready=draw(st.booleans()) or draw(st.booleans()),
            )
        )
    jobs = [
        Job(
            id=f"j{number}",
            submitted_at=float(draw(st.integers(0, 5))),
            options=tuple(draw(st.lists(options(), max_size=3))),
            goal=draw(st.sampled_from(list(Goal))),
            only_node=draw(st.sampled_from([None, None, None, "n0"])),
            hold=draw(st.sampled_from(["", "", "", "not yet"])),
        )
        for number in range(draw(st.integers(0, 8)))
    ]
    return ClusterState(jobs=tuple(jobs), nodes=tuple(nodes))
