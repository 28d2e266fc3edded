"""First in, first out over the jobs' options.

A job takes its best option that fits now, if that is within `TOLERANCE` of the best one it could get
on the empty cluster; else it waits and nobody behind it may take the GPU models it waits for, so that no
gang starves. Jobs that need other GPU models pass.
Source: FIFO with filled-in configurations, after Jansen et al., CoTune (docs/scheduling.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from knowledge.core.types import Option
from scheduler.core.placement import could_hold, place
from scheduler.core.types import Action, ClusterState, GpuId, Job, Node, Plan, Start, Wait

TOLERANCE = 1.25


@dataclass(frozen=True, slots=True)
class Fifo:
    name: str = "fifo"
    preempts: bool = False
    round_s: float | None = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        """Start jobs in the order of their arrival; ties end in the id."""
        nodes = {(node.id, node.gpu_model): node for node in state.nodes}
        taken: set[str] = set()  # GPU models that a job further ahead waits for
        actions: list[Action] = []
        waiting = [job for job in state.jobs if job.holds is None]
        for job in sorted(waiting, key=lambda job: (job.submitted_at, job.id)):
            action = _decide_one(job, tuple(nodes.values()), taken)
            actions.append(action)
            if isinstance(action, Start):
                _take(nodes, action.option.gpu_model, action.gpus)
        return Plan(tuple(actions), state.memory)


def _decide_one(job: Job, nodes: Sequence[Node], taken: set[str]) -> Action:
    if job.hold:
        return Wait(job.id, "hold", job.hold)
    possible = [option for option in job.options if could_hold(option, nodes, job.only_node)]
    if not possible:
        return _nowhere(job)
    limit = TOLERANCE * min(option.score(job.goal) for option in possible)
    acceptable = [option for option in possible if option.score(job.goal) <= limit]
    for option in acceptable:
        if option.gpu_model not in taken and (gpus := place(option, nodes, job.only_node)):
            return Start(job.id, option, gpus)
    blocked = [option for option in acceptable if option.gpu_model in taken]
    taken.update(option.gpu_model for option in acceptable)
    return _busy(job, acceptable[0], nodes, behind=bool(blocked))


def _take(nodes: dict[tuple[str, str], Node], gpu_model: str, gpus: Sequence[GpuId]) -> None:
    for node_id, index in gpus:
        node = nodes[node_id, gpu_model]
        nodes[node_id, gpu_model] = replace(node, free=tuple(i for i in node.free if i != index))


def _nowhere(job: Job) -> Wait:
    if not job.options:
        return Wait(job.id, "no-option", "No registered node can run it; it starts when one joins that can.")
    if job.only_node:
        return Wait(
            job.id,
            "checkpoint-node",
            f"Its last checkpoint lies on {job.only_node} alone, and that node is not ready.",
        )
    return Wait(
        job.id,
        "no-node",
        f"Needs {_words(job.options[0])}; no ready node offers that. It starts when one is ready again.",
    )


def _busy(job: Job, option: Option, nodes: Sequence[Node], *, behind: bool) -> Wait:
    free = sum(len(node.free) for node in nodes if node.ready and node.gpu_model == option.gpu_model)
    text = f"Needs {_words(option)}; {free} {'is' if free == 1 else 'are'} free."
    if behind:
        return Wait(job.id, "behind", f"{text} Jobs that were submitted earlier go first.")
    return Wait(job.id, "busy", f"{text} It starts when running jobs release enough.")


def _words(option: Option) -> str:
    unit = "CPU slot" if option.gpu_model == "cpu" else f"{option.gpu_model} GPU"
    amount = f"{option.gpus} {unit}{'' if option.gpus == 1 else 's'}"
    return amount if option.nodes == 1 else f"{amount} on {option.nodes} nodes"
