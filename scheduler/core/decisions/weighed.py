"""The options that were weighed for a job: the score of each, and its fate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from knowledge.core.domain.types import Option, all_priced
from scheduler.core.cycle.options import CycleOptions
from scheduler.core.divide.bundles import bundle, possible_options
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.policies.sia import Sia
from scheduler.core.types import GpuId, JobInfo, NodeInfo, Plan, Policy, Resize, Start


class OptionVerdict(StrEnum):
    """The fate of an option."""

    CHOSEN = "chosen"
    PASSED = "passed"  # there was room; another one was chosen, or others go first
    FULL = "full"  # too few GPUs were free
    WORSE = "worse"  # so much worse than the best that the job rather waits
    NOWHERE = "nowhere"  # no ready node could hold it


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedOption:
    """One option as it stood.

    score: by the job's goal, as a multiple of the best that the ready nodes could hold; None: none could.
    program_cost: what the policy's own program counts for it. free: GPUs on which it could run, without those
    that are held or that jobs further ahead took.
    """

    option: Option
    fate: OptionVerdict
    score: float | None
    program_cost: float | None
    free: int

    @property
    def lacks(self) -> int:
        """GPUs that were missing."""
        return max(0, self.option.gpus - self.free)


def weigh(
    policy: Policy, job: JobInfo, nodes: Sequence[NodeInfo], plan: Plan, now: float
) -> list[WeighedOption]:
    """The job's options, best first by its goal."""
    free = FreeGpus(_left(job, nodes, plan))
    possible = [option for option in job.options if free.could_hold(option, job)]
    priced = all_priced(job.options)
    best = min((option.score(job.goal, priced=priced) for option in possible), default=0.0)
    costs = _program_costs(policy, job, free, now)
    given = next((action for action in plan.actions if action.job == job.id), None)
    found = []
    for option in job.options:
        score = option.score(job.goal, priced=priced) / best if best and option in possible else None
        fate = OptionVerdict.NOWHERE
        if isinstance(given, Start | Resize) and option == given.option:
            fate = OptionVerdict.CHOSEN
        elif option in possible and _is_worse(policy, job, score):
            fate = OptionVerdict.WORSE
        elif option in possible:
            fate = OptionVerdict.PASSED if free.place(option, job) else OptionVerdict.FULL
        room = free.count_for(option, job.avoids)
        found.append(
            WeighedOption(option=option, fate=fate, score=score, program_cost=costs.get(option), free=room)
        )
    return sorted(found, key=lambda one: (one.score is None, one.score or 0.0, bundle(one.option)))


def _left(job: JobInfo, nodes: Sequence[NodeInfo], plan: Plan) -> list[NodeInfo]:
    """The nodes with the GPUs that the job found free.

    Jobs ahead of it have taken theirs.
    """
    taken: set[GpuId] = set()
    for action in plan.actions:
        if action.job == job.id:
            break
        if isinstance(action, Start | Resize):
            taken.update(action.gpus)
    return [replace(node, free=tuple(sorted(_free(node, job, taken)))) for node in nodes]


def _free(node: NodeInfo, job: JobInfo, taken: set[GpuId]) -> set[int]:
    free = {index for index in node.free if (node.id, index) not in taken}
    if job.holds and job.holds.option.gpu_model == node.gpu_model:
        free |= {index for holder, index in job.holds.gpus if holder == node.id}
    return free


def _is_worse(policy: Policy, job: JobInfo, score: float | None) -> bool:
    """Is this so much worse than the job's best option that it rather waits?"""
    rules = policy.rules
    return score is not None and isinstance(rules, CycleOptions) and score > rules.tolerance_of(job.goal)


def _program_costs(policy: Policy, job: JobInfo, free: FreeGpus, now: float) -> dict[Option, float]:
    """The value of each option in the policy's own program, where it has one."""
    if not isinstance(policy, Sia):
        return {}
    options = possible_options(job, free, policy.rules)
    return dict(zip(options, policy.costs(job, options, now), strict=True))
