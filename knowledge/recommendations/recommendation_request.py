"""A request for a recommendation in plain values, as a program writes it.

It is checked field by field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.analytic.links import NETWORK_BYTES_S
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Goal, GpuPool, Inventory, Workload
from knowledge.core.recommend.objectives import needed_limit, why_needed
from trainer.recipes import DEFAULT_RECIPE, RECIPES
from trainer.strict_json import is_number, is_whole

LEAST_MEMORY = 2**20
LARGEST = 1e30
MOST_GPUS, LONGEST_ROW, MOST_ROWS = 10_000, 10_000_000, 10**12
USUAL_DATA = Workload(rows=1000, lengths=((512, 1000),))


class BadRequest(ValueError):
    """A field that cannot be used; the message names it and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendationRequest:
    """A request for a recommendation, read and checked."""

    model: str
    recipe: str
    fixed: Mapping[str, Any]
    workload: Workload
    inventory: Inventory
    goal: Goal
    deadline_s: float | None
    budget: float | None


@dataclass(frozen=True, slots=True)
class RequestFields:
    """An object of the request, at the place `where`.

    A missing field reads as None.
    """

    raw: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, raw: Any, known: Sequence[str], where: str = "") -> RequestFields:
        """Raises BadRequest for what is no object and for names that are not known."""
        if not isinstance(raw, dict):
            raise BadRequest(f"{where or 'the request'}: must be an object")
        inside = f"{where}." if where else ""
        if strange := sorted(raw.keys() - set(known)):
            raise BadRequest(f"{inside}{strange[0]}: is not a field; known are {', '.join(known)}")
        return cls(raw, inside)

    def bad(self, name: str, message: str) -> BadRequest:
        return BadRequest(f"{self.where}{name}: {message}")

    def text(self, name: str, choices: Sequence[str] = ()) -> str | None:
        value = self.raw.get(name)
        if value is not None and (not isinstance(value, str) or not value.isprintable() or not value):
            raise self.bad(name, "must be a text")
        if value is not None and choices and value not in choices:
            raise self.bad(name, f"must be one of {', '.join(choices)}")
        return value

    def number(self, name: str, *, zero: bool = False) -> float | None:
        """A finite number above 0, or also 0."""
        value = self.raw.get(name)
        if value is None:
            return None
        if not is_number(value) or not abs(value) <= LARGEST:
            raise self.bad(name, f"must be a number, at most {LARGEST:g}")
        if value < 0 or (value == 0 and not zero):
            raise self.bad(name, "must be 0 or more" if zero else "must be above 0")
        return float(value)

    def whole(self, name: str, low: int, high: int) -> int | None:
        value = self.raw.get(name)
        return None if value is None else whole(value, f"{self.where}{name}", low, high)

    def items(self, name: str) -> list[Any]:
        value = self.raw.get(name)
        if value is not None and not isinstance(value, list):
            raise self.bad(name, "must be a list")
        return value or []


def whole(value: Any, name: str, low: int, high: int) -> int:
    """The value if it is a whole number between the bounds. Raises BadRequest."""
    if not is_whole(value) or not low <= value <= high:
        raise BadRequest(f"{name}: must be a whole number between {low:,} and {high:,}")
    return value


def read(raw: Any) -> RecommendationRequest:
    """The request as values. Raises BadRequest, ParamError and UnknownGpu."""
    known = (
        "model",
        "recipe",
        "params",
        "goal",
        "deadline_s",
        "budget",
        "workload",
        "inventory",
        "max_nodes",
    )
    fields = RequestFields.of(raw, known)
    model = fields.text("model")
    if model is None:
        raise fields.bad("model", "is needed: a base model of the catalogue, or a hub id")
    goal = Goal(fields.text("goal", list(Goal)) or Goal.BALANCED)
    needed = needed_limit(goal, deadline="deadline_s")
    if needed and fields.raw.get(needed) is None:
        raise fields.bad(needed, why_needed(goal))
    params = fields.raw.get("params")
    if params is not None and not isinstance(params, dict):
        raise fields.bad("params", "must be an object of parameters")
    recipe = fields.text("recipe", list(RECIPES)) or DEFAULT_RECIPE.name
    return RecommendationRequest(
        model=model,
        recipe=recipe,
        fixed=RECIPES[recipe].clean(params or {}),
        workload=_workload(fields.raw.get("workload")),
        inventory=_inventory(fields),
        goal=goal,
        deadline_s=fields.number("deadline_s"),
        budget=fields.number("budget"),
    )


def _workload(raw: Any) -> Workload:
    if raw is None:
        return USUAL_DATA
    fields = RequestFields.of(raw, ("rows", "lengths", "validation_rows"), "workload")
    lengths = sorted(_pair(pair) for pair in fields.items("lengths"))
    counted = sum(rows for _, rows in lengths)
    if not counted:
        raise fields.bad("lengths", "needs pairs of [tokens, rows], e.g. [[512, 5000]]")
    rows = fields.whole("rows", 1, MOST_ROWS)
    if rows is not None and rows != counted:
        raise fields.bad("rows", f"is {rows:,}, but lengths count {counted:,}; leave one out or correct it")
    unseen = fields.whole("validation_rows", 0, MOST_ROWS) or 0
    return Workload(rows=counted, lengths=tuple(lengths), validation_rows=unseen)


def _pair(raw: Any) -> tuple[int, int]:
    name = "workload.lengths"
    if not isinstance(raw, list) or len(raw) != 2:
        raise BadRequest(f"{name}: needs pairs of [tokens, rows], e.g. [[512, 5000]]")
    return whole(raw[0], name, 1, LONGEST_ROW), whole(raw[1], name, 1, MOST_ROWS)


def _inventory(fields: RequestFields) -> Inventory:
    known = portal_catalogue()
    pools = tuple(_pool(pool, f"inventory[{at}]", known) for at, pool in enumerate(fields.items("inventory")))
    return Inventory(pools=pools, max_nodes=fields.whole("max_nodes", 1, MOST_GPUS) or 1)


def _pool(raw: Any, where: str, catalogue: Catalogue) -> GpuPool:
    """A pool; what is left out is the data sheet's."""
    known = ("gpu_model", "node_sizes", "memory_bytes", "price_per_gpu_hour", "peak_flops")
    fields = RequestFields.of(raw, (*known, "bandwidth_bytes_s", "network"), where)
    name = fields.text("gpu_model")
    if name is None:
        raise fields.bad("gpu_model", "is needed")
    gpu = catalogue.gpu(name)
    sizes = tuple(whole(s, f"{where}.node_sizes", 1, MOST_GPUS) for s in fields.items("node_sizes"))
    if not sizes:
        raise fields.bad("node_sizes", "is needed: the GPUs of each node, e.g. [8, 8]")
    memory = fields.whole("memory_bytes", LEAST_MEMORY, 2**60)
    return GpuPool(
        gpu_model=gpu.gpu_model,
        node_sizes=sizes,
        memory_bytes=memory or int(gpu.capacity_bytes),
        price_per_gpu_hour=fields.number("price_per_gpu_hour", zero=True) or 0.0,
        peak_flops=fields.number("peak_flops"),
        bandwidth_bytes_s=fields.number("bandwidth_bytes_s"),
        network=fields.text("network", list(NETWORK_BYTES_S)) or "none",
    )
