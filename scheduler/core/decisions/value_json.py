"""Which fields of plain values JSON does not bring back, or take, as they were."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import MISSING, fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from knowledge.core.domain.option_json import INTERVALS, VERSION, read_option
from knowledge.core.domain.types import Goal, Option
from scheduler.core.limits import Limits, Quota, UserLimit, Window
from scheduler.core.market.types import Acquire, MarketView, NodeAction, NodeTerms, Release, SlotOffer
from scheduler.core.stopping import SENTENCES, StopReason
from scheduler.core.types import (
    Action,
    GpuSite,
    Holding,
    JobInfo,
    NodeInfo,
    Preempt,
    Resize,
    Start,
    Topology,
    Wait,
)
from scheduler.states import WaitState

Raw = dict[str, Any]
T = TypeVar("T")


def _gpus(raw: list[list[Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((node, index) for node, index in raw)


def _held_option(raw: Raw | Option) -> Option:
    return raw if isinstance(raw, Option) else read_option(raw)


def _stop_reason(raw: str) -> StopReason:
    """Decisions that were kept before reasons had words hold the sentence."""
    told = (reason for reason, sentence in SENTENCES.items() if sentence == raw)
    return next(told, None) or StopReason(raw)


ACTIONS: dict[str, type[Action]] = {action.__name__: action for action in (Start, Wait, Preempt, Resize)}
NODE_ACTIONS: dict[str, type[NodeAction]] = {action.__name__: action for action in (Acquire, Release)}
# The fields that JSON does not bring back as they were.
READ: dict[type[Any], dict[str, Callable[[Any], Any]]] = {
    JobInfo: {
        "goal": Goal,
        "topology": Topology,
        "avoids": frozenset,
        "awaits": tuple,
        "holds": lambda raw: read_value(Holding, raw),
    },
    Holding: {"option": _held_option, "gpus": _gpus},
    NodeInfo: {
        "free": tuple,
        "cannot_train": frozenset,
        "sites": lambda raw: tuple(GpuSite(*site) for site in raw),
        "kind": NodeTerms,
    },
    MarketView: {
        "offer": lambda raw: SlotOffer(*raw),
        "forecast": lambda raw: tuple(SlotOffer(*offer) for offer in raw),
        "usual": lambda raw: SlotOffer(*raw),
        "weights": dict,
    },
    Acquire: {"kind": NodeTerms},
    Release: {},
    Start: {"option": read_option, "gpus": _gpus},
    Resize: {"option": read_option, "gpus": _gpus},
    Wait: {"code": WaitState},
    Preempt: {"reason": _stop_reason},
    Limits: {
        "quotas": lambda raw: tuple(read_value(Quota, quota) for quota in raw),
        "users": lambda raw: tuple(read_value(UserLimit, limit) for limit in raw),
    },
    Quota: {},
    Window: {"nodes": frozenset},
    UserLimit: {},
}


def read_value(kind: type[T], raw: Raw) -> T:
    read = READ[kind]
    return kind(**{name: read[name](value) if name in read else value for name, value in raw.items()})


def raw_value(value: Any) -> Raw:
    """A dataclass for JSON; a field with its default is left out."""
    kind: Any = type(value)
    names, defaults, values_of = _fields(kind)
    values = zip(names, values_of(value), defaults, strict=True)
    raw = {name: held for name, held, default in values if held != default}
    for name, write in WRITTEN.get(kind, {}).items():
        if name in raw:
            raw[name] = write(raw[name])
    return {"version": VERSION, **raw} if kind is Option else raw


def raw_all(values: Iterable[Any]) -> list[Raw]:
    """Dataclasses of one kind for JSON, each as `raw_value` says it.

    Thousands are written field by field, which is quicker.
    """
    values = list(values)
    if not values:
        return []
    kind: Any = type(values[0])
    names, defaults, values_of = _fields(kind)
    found: list[Raw] = [{"version": VERSION} if kind is Option else {} for _ in values]
    for name, default, column in zip(names, defaults, zip(*map(values_of, values), strict=True), strict=True):
        rows, stored = found, list(column)
        if default is not MISSING:
            kept = [place for place, held in enumerate(column) if held != default]
            rows, stored = [found[place] for place in kept], [column[place] for place in kept]
        for row, held in zip(rows, _written(kind, name, stored), strict=True):
            row[name] = held
    return found


def _written(kind: type[Any], name: str, column: Sequence[Any]) -> Sequence[Any]:
    """The values of one field for JSON."""
    write = WRITTEN.get(kind, {}).get(name)
    if write is raw_value:
        return raw_all(column)
    return list(map(write, column)) if write else column


def raw_columns(values: Sequence[Any], but: Container[str] = ()) -> Raw:
    """Dataclasses of one kind for JSON, field by field.

    That is quicker and shorter than one by one. A field in which all have the default is left out. but:
    fields that are left out, too.
    """
    if not values:
        return {}
    kind: Any = type(values[0])
    names, defaults, values_of = _fields(kind)
    raw = {}
    columns = zip(*map(values_of, values), strict=True)
    for name, default, column in zip(names, defaults, columns, strict=True):
        if name not in but and column.count(default) < len(column):
            raw[name] = _written(kind, name, column)
    return raw


def rows(columns: Raw) -> list[Raw]:
    """The values of each of these dataclasses, by field."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# The fields that JSON does not take as they are.
WRITTEN: dict[type[Any], dict[str, Callable[[Any], Any]]] = {
    JobInfo: {"avoids": sorted},
    NodeInfo: {"cannot_train": sorted},
    MarketView: {"weights": dict},
    Start: {"option": raw_value},
    Resize: {"option": raw_value},
    Limits: dict.fromkeys(("quotas", "users"), raw_all),
    Window: {"nodes": sorted},
    Option: dict.fromkeys(("config", *INTERVALS), raw_value),
}


@cache
def _fields(kind: type[Any]) -> tuple[list[str], list[Any], Callable[[Any], tuple[Any, ...]]]:
    """The names of its fields, their defaults, and what reads them all."""
    found = fields(kind)
    names = [field.name for field in found]
    defaults = [
        field.default if field.default_factory is MISSING else field.default_factory() for field in found
    ]
    if len(names) == 1:  # of one name it gives the value, not a tuple
        return names, defaults, lambda value: (getattr(value, names[0]),)
    return names, defaults, attrgetter(*names)
