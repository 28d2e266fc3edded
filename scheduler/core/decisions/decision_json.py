"""Decisions as JSON: what a policy knew, and what it decided.

Equal values come back, floats to the last bit, so that a policy decides the same again. Options of jobs are
large and rarely change, so that inputs name them by digests, under which they are kept apart.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from knowledge.core.domain.option_json import INTERVALS, VERSION, read_option
from knowledge.core.domain.types import Goal, Option
from scheduler.core.limits import Limits, Quota, UserLimit, Window
from scheduler.core.types import (
    Action,
    ClusterState,
    GpuSite,
    Holding,
    JobInfo,
    NodeInfo,
    Plan,
    Preempt,
    Resize,
    Start,
    Topology,
    Wait,
)
from scheduler.states import WaitState

LAYOUT = 1  # of what is written
DIGEST_BYTES = 16

Options = tuple[Option, ...]
Raw = dict[str, Any]
T = TypeVar("T")


class UnreadableDecision(ValueError):
    """A decision, or options that it names, cannot be read; the message says why."""


class PolicyInput(NamedTuple):
    """What a policy was given."""

    state: ClusterState
    now: float


def pack_options(options: Options) -> bytes:
    """The options of a job, as they are kept under their digest."""
    return _packed([_raw(option) for option in options])


def options_digest(packed: bytes) -> str:
    """The name of packed options."""
    return hashlib.blake2b(packed, digest_size=DIGEST_BYTES).hexdigest()


def unpack_options(packed: bytes) -> Options:
    """Raises UnreadableDecision."""
    return _read(lambda: tuple(read_option(raw) for raw in _unpacked(packed)))


def pack_input(given: PolicyInput, digests: Mapping[str, str]) -> bytes:
    """What a policy was given; `digests`: of the options of each job that has any."""
    state = given.state
    jobs = [_raw_job(job, digests) for job in state.jobs]
    return _packed(
        {
            "layout": LAYOUT,
            "now": given.now,
            "explain": state.explain,
            "jobs": jobs,
            "nodes": [_raw(node) for node in state.nodes],
            "memory": dict(state.memory),
            "solved": dict(state.solved),
            **({"limits": _raw(state.limits)} if state.limits else {}),
            **({"windows": _raw_all(state.windows)} if state.windows else {}),
        }
    )


class PackedInput:
    """What a policy was given, read as far as it is asked for.

    Raises UnreadableDecision.
    """

    def __init__(self, packed: bytes) -> None:
        raw = _read(lambda: _unpacked(packed))
        layout = raw.get("layout") if isinstance(raw, dict) else None
        if layout != LAYOUT:
            raise UnreadableDecision(
                f"It is kept in layout {layout}, and this release reads layout {LAYOUT} alone; replay it with"
                " the release that made it."
            )
        self._raw: Raw = raw
        self._jobs: dict[str, Raw] = _read(lambda: {job["id"]: job for job in raw["jobs"]})

    def digests(self, jobs: Iterable[str] | None = None) -> set[str]:
        """Of the options of these jobs, or of all."""
        found = self._jobs.values() if jobs is None else [self._jobs.get(job, {}) for job in jobs]
        return {job["options"] for job in found if "options" in job}

    def job(self, job_id: str, options: Mapping[str, Options]) -> JobInfo | None:
        """One of its jobs; None if it had none such.

        options: by digest.
        """
        raw = self._jobs.get(job_id)
        return None if raw is None else _job(raw, options)

    @property
    def now(self) -> float:
        return float(self._raw["now"])

    @property
    def nodes(self) -> tuple[NodeInfo, ...]:
        return _read(lambda: tuple(_value(NodeInfo, raw) for raw in self._raw["nodes"]))

    @property
    def waiting(self) -> int:
        """How many jobs waited."""
        return sum("holds" not in job for job in self._jobs.values())

    def given(self, options: Mapping[str, Options]) -> PolicyInput:
        """All of it. `options`: by digest."""
        state = ClusterState(
            jobs=tuple(_job(raw, options) for raw in self._jobs.values()),
            nodes=self.nodes,
            memory=self._raw["memory"],
            explain=self._raw["explain"],
            solved=self._raw["solved"],
            limits=_read(lambda: _value(Limits, self._raw.get("limits", {}))),
            windows=_read(lambda: tuple(_value(Window, raw) for raw in self._raw.get("windows", ()))),
        )
        return PolicyInput(state, self.now)


def pack_plan(plan: Plan) -> bytes:
    """A policy's decision; what a solver found belongs to the input."""
    actions = [{"verb": type(action).__name__, **_raw(action)} for action in plan.actions]
    return _packed({"actions": actions, "memory": dict(plan.memory)})


def unpack_plan(packed: bytes) -> Plan:
    """Raises UnreadableDecision."""
    raw = _read(lambda: _unpacked(packed))
    return _read(lambda: Plan(tuple(map(_action, raw["actions"])), raw["memory"]))


def _action(raw: Raw) -> Action:
    kind = ACTIONS[raw.pop("verb")]
    return _value(kind, raw)


def _raw_job(job: JobInfo, digests: Mapping[str, str]) -> Raw:
    """A job for JSON.

    The option that it runs with is named by its number among the job's options, if it is one of them.
    """
    raw = _raw(job)
    if raw.pop("options"):
        raw["options"] = digests[job.id]
    if held := job.holds:
        place = job.options.index(held.option) if held.option in job.options else _raw(held.option)
        raw["holds"] = {**_raw(held), "option": place}
    return raw


def _job(raw: Raw, options: Mapping[str, Options]) -> JobInfo:
    digest = raw.get("options")
    if digest is not None and digest not in options:
        raise UnreadableDecision(f"The options {digest} of the job {raw['id']} are not kept any more.")
    return _read(lambda: _job_info(raw, options[digest] if digest else ()))


def _job_info(raw: Raw, options: Options) -> JobInfo:
    held = raw.get("holds")
    if held and isinstance(held["option"], int):
        raw = {**raw, "holds": {**held, "option": options[held["option"]]}}
    return _value(JobInfo, {**raw, "options": options})


def _gpus(raw: list[list[Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((node, index) for node, index in raw)


def _held_option(raw: Raw | Option) -> Option:
    return raw if isinstance(raw, Option) else read_option(raw)


ACTIONS: dict[str, type[Action]] = {action.__name__: action for action in (Start, Wait, Preempt, Resize)}
# The fields that JSON does not bring back as they were.
READ: dict[type[Any], dict[str, Callable[[Any], Any]]] = {
    JobInfo: {
        "goal": Goal,
        "topology": Topology,
        "avoids": frozenset,
        "awaits": tuple,
        "holds": lambda raw: _value(Holding, raw),
    },
    Holding: {"option": _held_option, "gpus": _gpus},
    NodeInfo: {
        "free": tuple,
        "cannot_train": frozenset,
        "sites": lambda raw: tuple(GpuSite(*site) for site in raw),
    },
    Start: {"option": read_option, "gpus": _gpus},
    Resize: {"option": read_option, "gpus": _gpus},
    Wait: {"code": WaitState},
    Preempt: {},
    Limits: {
        "quotas": lambda raw: tuple(_value(Quota, quota) for quota in raw),
        "users": lambda raw: tuple(_value(UserLimit, limit) for limit in raw),
    },
    Quota: {},
    Window: {"nodes": frozenset},
    UserLimit: {},
}


def _value(kind: type[T], raw: Raw) -> T:
    read = READ[kind]
    return kind(**{name: read[name](value) if name in read else value for name, value in raw.items()})


def _raw(value: Any) -> Raw:
    """A dataclass for JSON; a field with its default is left out."""
    kind: Any = type(value)
    names, defaults, values_of = _fields(kind)
    values = zip(names, values_of(value), defaults, strict=True)
    raw = {name: held for name, held, default in values if held != default}
    for name, write in WRITTEN.get(kind, {}).items():
        if name in raw:
            raw[name] = write(raw[name])
    return {"version": VERSION, **raw} if kind is Option else raw


def _raw_all(values: Iterable[Any]) -> list[Raw]:
    return [_raw(value) for value in values]


# The fields that JSON does not take as they are.
WRITTEN: dict[type[Any], dict[str, Callable[[Any], Any]]] = {
    JobInfo: {"avoids": sorted},
    NodeInfo: {"cannot_train": sorted},
    Start: {"option": _raw},
    Resize: {"option": _raw},
    Limits: dict.fromkeys(("quotas", "users"), _raw_all),
    Window: {"nodes": sorted},
    Option: dict.fromkeys(("config", *INTERVALS), _raw),
}


@cache
def _fields(kind: type[Any]) -> tuple[list[str], list[Any], Callable[[Any], tuple[Any, ...]]]:
    """The names of its fields, their defaults, and what reads them all."""
    found = fields(kind)
    names = [field.name for field in found]
    defaults = [
        field.default if field.default_factory is MISSING else field.default_factory() for field in found
    ]
    return names, defaults, attrgetter(*names)


def _packed(raw: Raw | list[Any]) -> bytes:
    return zlib.compress(json.dumps(raw, separators=(",", ":")).encode())


def _unpacked(packed: bytes) -> Any:
    return json.loads(zlib.decompress(packed))


def _read(read: Callable[[], T]) -> T:
    try:
        return read()
    except UnreadableDecision:
        raise
    except (zlib.error, ValueError) as wrong:
        raise UnreadableDecision(f"It is damaged: {wrong}.") from wrong
    except (LookupError, TypeError, AttributeError) as wrong:
        raise UnreadableDecision(f"It does not fit this release: {wrong}.") from wrong
