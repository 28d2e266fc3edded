"""The plan of a chaos run: each fault with its target, start and duration.

All of it is drawn from the seed before anything runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind of fault.

    target: `node` or `control` for one of several, else the name of the target itself

    weight: how often it comes in a round in which all kinds come

    lasts: the range from which its seconds are drawn evenly; with `leases`, multiples of the lease
    """

    name: str
    target: str
    weight: int
    lasts: tuple[float, float]
    how: Callable[[Any, str], AbstractContextManager[None]]
    leases: bool = False
    always: bool = False  # also in a run of two minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a run; `at_s` counts from the beginning of the faults."""

    at_s: float
    kind: Kind
    target: str
    lasts_s: float

    @property
    def until_s(self) -> float:
        return self.at_s + self.lasts_s


AT_ONCE = 3  # faults in force at the same time, at most
PAUSE_S = 4.0  # mean time from one fault to the next
SOON = 10  # faults, within which those begin that always come


def plan(
    rng: random.Random,
    kinds: Sequence[Kind],
    *,
    lasts_s: float,
    lease_s: float,
    several: Mapping[str, Sequence[str]],
) -> Iterator[Fault]:
    """Yield the faults of a run of `lasts_s` seconds in the order in which they begin.

    No two faults strike one target at a time.

    several: the names behind targets of which there are several, each of which may be struck
    """
    running: list[Fault] = []
    bag, at_s = list[Kind](), PAUSE_S / 2
    owed = [kind for kind in kinds if kind.always]
    while at_s < lasts_s:
        if not bag:
            bag = rng.sample(kinds, len(kinds), counts=[kind.weight for kind in kinds])
            for kind in owed:
                bag.insert(max(0, len(bag) - rng.randrange(SOON)), kind)
        running = [fault for fault in running if fault.until_s + PAUSE_S > at_s]
        kind = bag.pop()
        target = rng.choice(several.get(kind.target, (kind.target,)))
        drawn_s = rng.uniform(*kind.lasts) * (lease_s if kind.leases else 1)
        busy = any(fault.target == target for fault in running)
        if not busy and len(running) < AT_ONCE and at_s + drawn_s <= lasts_s:
            running.append(Fault(at_s=at_s, kind=kind, target=target, lasts_s=drawn_s))
            if kind in owed:
                owed.remove(kind)
            yield running[-1]
        elif kind in owed:
            bag.insert(max(0, len(bag) - 1), kind)  # it comes after the next one
        at_s += rng.expovariate(1 / PAUSE_S)
