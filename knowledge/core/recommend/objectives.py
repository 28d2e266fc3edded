"""Objectives over options: goal, deadline, budget, and the time-money trade-off."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.core.domain.types import Goal, Option, all_priced
from knowledge.core.recommend.search import rank

NEAREST = 1.05  # options whose excess over the limits differs by less are equally bad


def needed_limit(goal: str, *, deadline: str) -> str | None:
    """Return the field that the goal requires, if any.

    deadline: how the caller names a deadline's field.
    """
    return {Goal.DEADLINE.value: deadline, Goal.BUDGET.value: "budget"}.get(goal)


def why_needed(goal: str) -> str:
    """The error of a request without the field of `needed_limit`, with the remedy."""
    return f"is needed for the goal {goal}; give one or choose another goal"


def meets(option: Option, deadline_s: float | None = None, budget: float | None = None) -> bool:
    """Return whether an option is expected to keep the limits.

    It must end within `deadline_s` seconds of its start and cost no more than `budget`.
    """
    in_time = deadline_s is None or option.duration_s.value <= deadline_s
    return in_time and (budget is None or option.cost.value <= budget)


def ranked(
    options: Sequence[Option], goal: Goal, deadline_s: float | None = None, budget: float | None = None
) -> tuple[Option, ...]:
    """Sort options that meet the limits first, best by the goal.

    The others follow, nearest to the limits first.
    """

    priced = all_priced(options)

    def key(option: Option) -> tuple[bool, float, tuple[float, int, float, float, str, float]]:
        kept = meets(option, deadline_s, budget)
        missed_by = 0.0 if kept else excess(option, deadline_s, budget)
        return not kept, missed_by, rank(option, goal, priced=priced)

    return tuple(sorted(options, key=key))


def affordable(
    options: Sequence[Option], budget: float | None, agreed: float | None = None
) -> tuple[Option, ...]:
    """Return the options that a job may run with, in their order.

    They cost no more than the budget, or than what its owner agreed to by submitting it over the budget.
    """
    if budget is None:
        return tuple(options)
    limit = budget if agreed is None or agreed <= budget else NEAREST * agreed
    return tuple(option for option in options if option.cost.value <= limit)


def keeping(
    options: Sequence[Option], deadline_s: float | None = None, budget: float | None = None
) -> tuple[Option, ...]:
    """Return the options that meet the limits, in their order.

    If none does, these are the options nearest to the limits.
    """
    if deadline_s is None and budget is None:
        return tuple(options)
    kept = [option for option in options if meets(option, deadline_s, budget)]
    if kept or not options:
        return tuple(kept)
    missed = [excess(option, deadline_s, budget) for option in options]
    return tuple(o for o, by in zip(options, missed, strict=True) if by <= NEAREST * min(missed))


def excess(option: Option, deadline_s: float | None = None, budget: float | None = None) -> float:
    """Return the factor by which an option exceeds the limit it misses most.

    1 or less meets them all.
    """
    time = option.duration_s.value / deadline_s if deadline_s else 0.0
    return max(time, option.cost.value / budget if budget else 0.0)


def pareto(options: Sequence[Option]) -> tuple[Option, ...]:
    """The options that no other beats in both time and cost, fastest first.

    Without prices GPU time counts.
    """
    priced = any(option.cost.value > 0 for option in options)

    def cost(option: Option) -> float:
        return option.cost.value if priced else option.duration_s.value * option.gpus

    front: list[Option] = []
    for option in sorted(options, key=lambda option: (option.duration_s.value, cost(option), option.key)):
        if not front or cost(option) < cost(front[-1]):
            front.append(option)
    return tuple(front)
