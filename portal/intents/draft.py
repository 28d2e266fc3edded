"""A reading as the body of a submission.

The same checks judge it as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Inventory
from knowledge.core.explain.infeasible import beyond_the_nodes
from portal.intents.core.combine import shown
from portal.intents.core.types import FilledField
from scheduler.errors import BadParameters
from scheduler.services.jobs.objectives import aim_of_request
from trainer.recipes import DEFAULT_RECIPE, PARAMS, ParamError

FORM = ("model", "training_file", "validation_file", "name", "goal", "deadline_at", "budget", "team")
PLACES = frozenset({"gpu_model", "number_gpus", "number_nodes"})
Clean = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def params_of(fields: Mapping[str, FilledField]) -> dict[str, Any]:
    """The recipe's parameters among the fields."""
    return {name: field.value for name, field in fields.items() if name in PARAMS}


def body_of(fields: Mapping[str, FilledField]) -> dict[str, Any]:
    """The body for `POST /api/jobs/`, as far as the sentence says it."""
    own = {name: shown(fields[name].value) for name in FORM if name in fields}
    params = params_of(fields)
    return {**own, "params": params} if params else own


def place_complaints(
    fields: Mapping[str, FilledField], nodes: Callable[[], Inventory], catalogue: Catalogue
) -> dict[str, str]:
    """Complaints about a place that no nodes give, as the page of a new job says them.

    A submission may ask for it, and then waits. `nodes` is asked only if a place is said.
    """
    fixed = params_of(fields)
    return beyond_the_nodes(fixed, nodes(), catalogue) if PLACES & fixed.keys() else {}


def complaints(
    fields: Mapping[str, FilledField], now: datetime, clean: Clean = DEFAULT_RECIPE.clean
) -> dict[str, str]:
    """Return what an ordinary submission would say, by field.

    `clean` checks the parameters.
    """
    found: dict[str, str] = {}
    try:
        clean(params_of(fields))
    except ParamError as wrong:
        found |= wrong.fields
    except BadParameters as refused:
        found |= {name.removeprefix("params."): message for name, message in refused.fields.items()}
    values = {name: fields[name].value for name in ("goal", "deadline_at", "budget") if name in fields}
    try:
        aim_of_request(
            goal=values.get("goal", "balanced"),
            deadline_at=values.get("deadline_at"),
            budget=values.get("budget"),
            now=now,
        )
    except BadParameters as refused:
        found |= refused.fields
    return found
