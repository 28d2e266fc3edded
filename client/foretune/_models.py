"""What the portal answers, as frozen values.

Each has the portal's own names. Names that this release does not know are in `extra`, the whole answer in
`raw`; what an answer leaves out is None.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

FINAL = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, kw_only=True)
class Model:
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, raw: Mapping[str, Any], **given: Any) -> Self:
        """From the portal's JSON; `given` are fields that are not in it."""
        values = {
            name: _value(hint, raw.get(told))
            for name, (told, hint) in _fields(cls).items()
            if name not in given
        }
        return cls(raw=raw, **values, **given)

    @property
    def extra(self) -> dict[str, Any]:
        known = {told for told, _ in _fields(type(self)).values()}
        return {name: value for name, value in self.raw.items() if name not in known}


_KNOWN: dict[type[Any], dict[str, tuple[str, Any]]] = {}


def _fields(cls: type[Any]) -> dict[str, tuple[str, Any]]:
    """Of each field, its name in the portal's JSON and its type."""
    if cls not in _KNOWN:
        hints = typing.get_type_hints(cls)
        own = [one for one in dataclasses.fields(cls) if one.name != "raw"]
        _KNOWN[cls] = {one.name: (one.metadata.get("json", one.name), hints[one.name]) for one in own}
    return _KNOWN[cls]


def _value(hint: Any, value: Any) -> Any:
    """The JSON value as the type of its field has it."""
    if value is None:
        return () if typing.get_origin(hint) is tuple else None
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (one for one in typing.get_args(hint) if one is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        return tuple(_value(typing.get_args(hint)[0], one) for one in value)
    if typing.get_origin(hint) is dict:
        return {key: _value(typing.get_args(hint)[1], one) for key, one in value.items()}
    if isinstance(hint, type) and issubclass(hint, Model):
        return hint.parse(value)
    return datetime.fromisoformat(value) if hint is datetime else value


@dataclass(frozen=True, kw_only=True)
class Interval(Model):
    """A prediction, and what it lies between four times in five."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Named(Model):
    """A team or a person."""

    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Choice(Model):
    """The value of a parameter, who chose it and why."""

    value: Any
    by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Promise(Model):
    duration_s: Interval
    tokens_per_second: Interval
    peak_memory_bytes: Interval
    cost: Interval | None
    p_valid: float | None
    startup_s: float | None
    steps: int | None
    source: str


@dataclass(frozen=True, kw_only=True)
class Option(Promise):
    """One way to run a job, and what is predicted for it."""

    config: dict[str, Any]
    step_s: float | None


@dataclass(frozen=True, kw_only=True)
class Reason(Model):
    code: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Failure(Model):
    message: str
    failure_class: str
    code: str


@dataclass(frozen=True, kw_only=True)
class End(Model):
    """When a running job will have ended."""

    at: datetime
    earliest: datetime
    latest: datetime


@dataclass(frozen=True, kw_only=True)
class Progress(Model):
    step: int
    total_steps: int | None
    loss: float | None
    tokens_per_second: float | None
    eta_s: float | None
    end: End | None
    silent_since: datetime | None


@dataclass(frozen=True, kw_only=True)
class Expected(Model):
    """When a waiting job will start and end."""

    start_at: datetime
    start_low: datetime
    start_high: datetime | None
    end_at: datetime | None
    end_low: datetime | None
    end_high: datetime | None


@dataclass(frozen=True, kw_only=True)
class Compared(Model):
    """A promised figure beside the actual one."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    actual: float | None
    inside: bool | None


@dataclass(frozen=True, kw_only=True)
class Figures(Model):
    """Of all attempts of a job."""

    duration_s: float
    startup_s: float
    waiting_s: float
    peak_memory_bytes: float | None


@dataclass(frozen=True, kw_only=True)
class Cost(Model):
    amount: float
    estimated: bool


@dataclass(frozen=True, kw_only=True)
class JobFields(Model):
    """A job; in lists without what is told of a single one only."""

    id: str
    version: int
    state: str
    internal_state: str
    stage: str
    state_since: datetime
    owner: Named
    team: Named | None
    submitted_by_token: str | None
    array: str | None
    name: str
    model: str
    recipe: str
    goal: str
    training_file: str
    validation_file: str | None
    deadline_at: datetime | None
    budget: float | None
    currency: str
    priority: str
    metadata: dict[str, str]
    progress: Progress | None
    waiting: Reason | None = field(metadata={"json": "wait"})  # `wait` is what one does for it
    expected: Expected | None
    error: Failure | None
    created_at: datetime
    first_started_at: datetime | None
    ended_at: datetime | None
    params: dict[str, Choice] | None
    promise: Promise | None
    figures: Figures | None
    first_loss: float | None
    cost: Cost | None
    comparison: tuple[Compared, ...]

    @property
    def ended(self) -> bool:
        return self.state in FINAL

    def __repr__(self) -> str:
        """In a line; all of it is in the fields."""
        shown = [repr(self.id), *([f"name={self.name!r}"] if self.name else []), f"state={self.state!r}"]
        if self.progress is not None and self.progress.step:
            shown.append(f"step={self.progress.step}, loss={self.progress.loss}")
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, kw_only=True)
class File(Model):
    id: str
    filename: str
    bytes: int
    rows: int
    format: str
    sha256: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Artifact(Model):
    """A file that a job produced."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Explanation(Model):
    """Why a job failed, as its log tells it, and what helps."""

    cause: str
    sentence: str
    remedy: str
    changes: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Me(Model):
    username: str
    admin: bool


@dataclass(frozen=True, kw_only=True)
class Plan(Model):
    """What the portal recommends and promises; nothing is submitted yet.

    fields: what was asked.
    """

    params: dict[str, Choice]
    options: tuple[Option, ...]
    notes: tuple[str, ...]
    trade: str
    currency: str
    fields: dict[str, Any]

    @property
    def plan(self) -> str:
        """The text under which the portal keeps it for a day; empty where it keeps none."""
        return str(self.raw.get("plan") or "")

    def __repr__(self) -> str:
        from ._tables import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from ._tables import plan_html

        return plan_html(self)


@dataclass(frozen=True, kw_only=True)
class Record(Model):
    """An object as the portal tells it: a node, a team, a window."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.raw[name]
        except KeyError:
            raise AttributeError(f"the portal tells no {name}, only {', '.join(sorted(self.raw))}") from None

    def __repr__(self) -> str:
        named = [f"{name}={self.raw[name]!r}" for name in ("id", "name", "username") if name in self.raw]
        return f"Record({', '.join(named)})"


class Rows(list[dict[str, Any]]):
    """Measured values by step, oldest first."""

    def to_pandas(self) -> Any:
        """A table of pandas, which has to be installed."""
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError as missing:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from missing

        return pandas.DataFrame(list(self))

    def __repr__(self) -> str:
        from ._tables import steps_text

        return steps_text(self)

    def _repr_html_(self) -> str:
        from ._tables import steps_html

        return steps_html(self)


@dataclass(frozen=True)
class Update:
    """What happened to a job that is followed.

    kind: `state`, `progress`, `log`, `away` (the portal is out of reach for the moment) or `end`.
    text: lines of the log, or why the portal is away. job: as it is now.
    """

    kind: str
    job: JobFields
    text: str = ""
