"""Decisions as JSON: what a policy knew, and what it decided.

Equal values come back, floats to the last bit, so that a policy decides the same again. Options of jobs are
large and rarely change, so that inputs name them by digests, under which they are kept apart.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from scheduler.core.decisions.value_json import (
    ACTIONS,
    NODE_ACTIONS,
    Raw,
    raw_all,
    raw_columns,
    raw_value,
    read_value,
    rows,
)
from scheduler.core.limits import Limits, Window
from scheduler.core.market.types import MarketView, NodeAction
from scheduler.core.types import Action, ClusterState, JobInfo, NodeInfo, Plan

LAYOUT = 2  # of what is written
READ_LAYOUTS = (1, 2)  # in the first, jobs and actions stood one by one
QUICKLY = 1  # zlib's level: a higher one makes a tenth less of it, in thrice the time
DIGEST_BYTES = 16
APART = ("options", "holds")  # fields of a job that are not kept as they are

Options = tuple[Option, ...]
T = TypeVar("T")


class UnreadableDecision(ValueError):
    """A decision, or options that it names, cannot be read; the message says why."""


class PolicyInput(NamedTuple):
    """The input of a policy."""

    state: ClusterState
    now: float


def pack_options(options: Options) -> bytes:
    """The options of a job, as they are kept under their digest."""
    return _packed([raw_value(option) for option in options])


def options_digest(packed: bytes) -> str:
    """The name of packed options."""
    return hashlib.blake2b(packed, digest_size=DIGEST_BYTES).hexdigest()


def unpack_options(packed: bytes) -> Options:
    """Raises UnreadableDecision."""
    return _read(lambda: tuple(read_option(raw) for raw in _unpacked(packed)))


def pack_input(given: PolicyInput, digests: Mapping[str, str]) -> bytes:
    """The input of a policy; `digests`: of the options of each job that has any."""
    state = given.state
    return _packed(
        {
            "layout": LAYOUT,
            "now": given.now,
            "explain": state.explain,
            "jobs": _raw_jobs(state.jobs, digests),
            "nodes": [raw_value(node) for node in state.nodes],
            "memory": dict(state.memory),
            "solved": dict(state.solved),
            **({"limits": raw_value(state.limits)} if state.limits else {}),
            **({"windows": raw_all(state.windows)} if state.windows else {}),
            **({"markets": raw_all(state.markets)} if state.markets else {}),
            **({"used": dict(state.used)} if state.used is not None else {}),
        }
    )


class PackedInput:
    """The input of a policy, read as far as it is asked for.

    Raises UnreadableDecision.
    """

    def __init__(self, packed: bytes) -> None:
        raw = _read(lambda: _unpacked(packed))
        layout = raw.get("layout") if isinstance(raw, dict) else None
        if layout not in READ_LAYOUTS:
            known = " and ".join(map(str, READ_LAYOUTS))
            raise UnreadableDecision(
                f"It is kept in layout {layout}, and this release reads layouts {known} alone; replay it with"
                " the release that made it."
            )
        self._raw: Raw = raw
        self._jobs: dict[str, Raw] = _read(lambda: {job["id"]: job for job in _job_rows(raw["jobs"])})

    def digests(self, jobs: Iterable[str] | None = None) -> set[str]:
        """The digests of the options of these jobs, or of all."""
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
        return _read(lambda: tuple(read_value(NodeInfo, raw) for raw in self._raw["nodes"]))

    @property
    def waiting(self) -> int:
        """How many jobs waited."""
        return sum("holds" not in job for job in self._jobs.values())

    def given(self, options: Mapping[str, Options]) -> PolicyInput:
        """Read a whole state. `options`: by digest."""
        state = ClusterState(
            jobs=tuple(_job(raw, options) for raw in self._jobs.values()),
            nodes=self.nodes,
            memory=self._raw["memory"],
            explain=self._raw["explain"],
            solved=self._raw["solved"],
            limits=_read(lambda: read_value(Limits, self._raw.get("limits", {}))),
            windows=_read(lambda: tuple(read_value(Window, raw) for raw in self._raw.get("windows", ()))),
            markets=_read(lambda: tuple(read_value(MarketView, raw) for raw in self._raw.get("markets", ()))),
            used=self._raw.get("used"),
        )
        return PolicyInput(state, self.now)


def pack_plan(plan: Plan) -> bytes:
    """A policy's decision; what a solver found belongs to the input."""
    runs = [
        {"verb": kind.__name__, "of": raw_columns(list(actions))}
        for kind, actions in groupby(plan.actions, key=type)
    ]
    nodes = [{"verb": type(action).__name__, **raw_value(action)} for action in plan.nodes]
    told = {"fallback": plan.fallback} if plan.fallback else {}
    return _packed({"runs": runs, "memory": dict(plan.memory), **({"nodes": nodes} if nodes else {}), **told})


def unpack_plan(packed: bytes) -> Plan:
    """Raises UnreadableDecision."""
    raw = _read(lambda: _unpacked(packed))
    return _read(
        lambda: Plan(
            tuple(_actions(raw)),
            raw["memory"],
            nodes=tuple(map(_node_action, raw.get("nodes", ()))),
            fallback=raw.get("fallback", ""),
        )
    )


def _actions(raw: Raw) -> Iterator[Action]:
    for one in raw.get("actions", ()):
        yield read_value(ACTIONS[one.pop("verb")], one)
    for run in raw.get("runs", ()):
        kind = ACTIONS[run["verb"]]
        yield from (read_value(kind, one) for one in rows(run["of"]))


def _node_action(raw: Raw) -> NodeAction:
    return read_value(NODE_ACTIONS[raw.pop("verb")], raw)


def _raw_jobs(jobs: Sequence[JobInfo], digests: Mapping[str, str]) -> Raw:
    """Jobs for JSON, field by field."""
    return {
        **raw_columns(jobs, but=APART),
        "options": [digests[job.id] if job.options else None for job in jobs],
        "holds": [_raw_holding(job) for job in jobs],
    }


def _raw_holding(job: JobInfo) -> Raw | None:
    """A holding; its option is a number if it is among the job's options."""
    held = job.holds
    if held is None:
        return None
    place = job.options.index(held.option) if held.option in job.options else raw_value(held.option)
    return {**raw_value(held), "option": place}


def _job_rows(raw: Raw | list[Raw]) -> list[Raw]:
    """The jobs one by one, without what they do not have."""
    found = raw if isinstance(raw, list) else rows(raw)
    for job in found:
        for name in APART:
            if job.get(name) is None:
                job.pop(name, None)
    return found


def _job(raw: Raw, options: Mapping[str, Options]) -> JobInfo:
    digest = raw.get("options")
    if digest is not None and digest not in options:
        raise UnreadableDecision(f"The options {digest} of the job {raw['id']} are not kept any more.")
    return _read(lambda: _job_info(raw, options[digest] if digest else ()))


def _job_info(raw: Raw, options: Options) -> JobInfo:
    held = raw.get("holds")
    if held and isinstance(held["option"], int):
        raw = {**raw, "holds": {**held, "option": options[held["option"]]}}
    return read_value(JobInfo, {**raw, "options": options})


def _packed(raw: Raw | list[Any]) -> bytes:
    return zlib.compress(json.dumps(raw, separators=(",", ":")).encode(), QUICKLY)


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
