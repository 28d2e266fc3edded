"""Options that a job's budget leaves.

The options that it leaves out are named in words for the job's owner.
"""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings

from knowledge.core.domain.types import Option
from knowledge.core.domain.wording import money
from knowledge.core.recommend.objectives import affordable
from scheduler.loop.options.option_cache import JobOptions


class WithinBudget(NamedTuple):
    """The options within a budget, and why there are not more.

    `why_none`: no option is left. `why_fewer`: some are left out. Each is empty where it does not hold.
    """

    options: tuple[Option, ...]
    why_none: str = ""
    why_fewer: str = ""


def within_budget(known: JobOptions, budget: float | None) -> WithinBudget:
    """Return the options that keep the budget.

    They may also keep the promise, where its owner accepted a dearer one.
    """
    left = affordable(known.options, budget, known.promised_cost)
    if budget is None or len(left) == len(known.options):
        return WithinBudget(left)
    limit = f"its budget of {money(budget, settings.CURRENCY)}"
    if left:
        return WithinBudget(left, why_fewer=f"Dearer GPUs are left out: they would break {limit}.")
    least = money(min(option.cost.value for option in known.options), settings.CURRENCY)
    return WithinBudget(
        left,
        why_none=f"Every node in service would break {limit}; the cheapest would cost {least}. It starts"
        " when a cheaper one joins or returns. Or cancel it and submit it with a larger budget.",
    )
