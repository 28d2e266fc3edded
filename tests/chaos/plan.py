"""Which fault strikes what, when and for how long: drawn from the seed before anything runs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of fault. `target` is "node" for one of the nodes, else what it strikes.

    lasts: seconds, or with `leases` multiples of the lease, drawn evenly from this range. A kind that is
    `heard_of` leaves the node able to sync in time; one that is not may cost it its lease.
    """

    name: str
    target: str
    weight: float
    lasts: tuple[float, float]
    leases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a run; `at_s` counts from the beginning of the faults."""

    at_s: float
    kind: str
    target: str
    lasts_s: float

    @property
    def until_s(self) -> float:
        return self.at_s + self.lasts_s


MOMENT = (0.0, 0.0)
KINDS = (
    Kind("web killed", "web", 3, (0.2, 3)),
    Kind("web away, less than a lease", "web", 2, (0.4, 0.9), leases=True),
    Kind("web away, more than a lease", "web", 1, (1.1, 1.5), leases=True),
    Kind("web paused", "web", 2, (2, 10)),
    Kind("scheduler killed", "control", 3, (0.2, 4)),
    Kind("worker killed", "work", 1, (0.2, 4)),
    Kind("beat killed", "beat", 1, (0.2, 4)),
    Kind("agent killed", "node", 3, (0.2, 3)),
    Kind("agent away, more than a lease", "node", 1, (1.2, 1.6), leases=True),
    Kind("training killed", "node", 3, MOMENT),
    Kind("agent and training killed", "node", 2, (0.2, 3)),
)
AT_ONCE = 3  # faults in force at the same time, at most
PAUSE_S = 4.0  # mean time from one fault to the next


def plan(
    rng: random.Random,
    *,
    lasts_s: float,
    lease_s: float,
    nodes: Sequence[str],
    control: Sequence[str],
    kinds: Sequence[Kind] = KINDS,
) -> list[Fault]:
    """Faults for `lasts_s` seconds, in the order in which they begin; no two on one target at a time."""
    targets = {"node": nodes, "control": control}
    return list(_draw(rng, lasts_s, lease_s, targets, kinds))


def _draw(
    rng: random.Random,
    lasts_s: float,
    lease_s: float,
    targets: dict[str, Sequence[str]],
    kinds: Sequence[Kind],
) -> Iterator[Fault]:
    running: list[Fault] = []
    at_s = PAUSE_S / 2
    while at_s < lasts_s:
        running = [fault for fault in running if fault.until_s + PAUSE_S > at_s]
        kind = rng.choices(kinds, [kind.weight for kind in kinds])[0]
        target = rng.choice(targets.get(kind.target, (kind.target,)))
        drawn_s = rng.uniform(*kind.lasts) * (lease_s if kind.leases else 1)
        busy = any(fault.target == target for fault in running)
        if not busy and len(running) < AT_ONCE and at_s + drawn_s <= lasts_s:
            running.append(Fault(at_s=at_s, kind=kind.name, target=target, lasts_s=drawn_s))
            yield running[-1]
        at_s += rng.expovariate(1 / PAUSE_S)
