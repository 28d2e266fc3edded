"""Actions of a plan that can never be carried out: mistakes of its policy.

Rows that have changed since the snapshot are none: they are checked as each action is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduler.core.types import ClusterState, GpuId, JobInfo, NodeInfo, Plan, Preempt, Resize, Start, Wait

RELEASES = Preempt | Resize
TAKES = Start | Resize


def faults(state: ClusterState, plan: Plan) -> list[str]:
    """A sentence for each of them; none if the plan is sound."""
    acted = [action for action in plan.actions if not isinstance(action, Wait)]
    if not acted:
        return []
    jobs = {job.id: job for job in state.jobs}
    nodes = {node.id: node for node in state.nodes}
    left = {
        gpu
        for action in acted
        if isinstance(action, RELEASES) and (job := jobs.get(action.job)) and job.holds
        for gpu in job.holds.gpus
    }
    taken: set[GpuId] = set()
    seen: set[str] = set()
    found: list[str] = []
    for action in acted:
        wrong = "has two actions" if action.job in seen else _of_job(action, jobs.get(action.job))
        seen.add(action.job)
        if not wrong and isinstance(action, TAKES):
            wrong = next(_of_gpus(action, nodes, left, taken), "")
            taken.update(action.gpus)
        if wrong:
            found.append(f"{type(action).__name__} of job {action.job}: it {wrong}.")
    return found


def _of_job(action: object, job: JobInfo | None) -> str:
    if not isinstance(action, Start | Resize | Preempt):
        return "is told to do what nobody knows"
    if job is None:
        return "is not there"
    if isinstance(action, Start):
        if job.holds:
            return "runs already"
        return "" if action.option in job.options else "has no such option"
    if job.holds is None:
        return "does not run"
    return "" if job.preemptible else "may not be stopped"


def _of_gpus(
    action: Start | Resize, nodes: Mapping[str, NodeInfo], left: set[GpuId], taken: set[GpuId]
) -> Iterator[str]:
    if len(set(action.gpus)) != action.option.gpus:
        yield f"takes {len(set(action.gpus))} GPUs, and its option {action.option.gpus}"
    for gpu in action.gpus:
        node = nodes.get(gpu[0])
        if node is None or not node.ready or node.gpu_model != action.option.gpu_model:
            yield f"takes GPU {gpu[1]} of {gpu[0]}, which is not ready or of another model"
        elif gpu in taken or (gpu not in left and gpu[1] not in node.free):
            yield f"takes GPU {gpu[1]} of {gpu[0]}, which is another job's"
