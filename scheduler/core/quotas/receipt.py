"""The GPU hours that a team was owed, used, lent and borrowed over a period."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple


class GpuSpan(NamedTuple):
    """GPUs that a team held, or was guaranteed, from one moment to another (s)."""

    team: str
    start: float
    end: float
    gpus: int = 1


@dataclass(slots=True)
class Receipt:
    """GPU-seconds of one team.

    borrowed: used beyond the guarantee. lent: what others borrowed, shared out over the teams whose
    guarantees lay idle in proportion to these; so no more than was idle.
    """

    guaranteed_s: float = 0.0
    used_s: float = 0.0
    lent_s: float = 0.0
    borrowed_s: float = 0.0


def receipts(
    held: Iterable[GpuSpan], owed: Iterable[GpuSpan], team: str, edges: list[float]
) -> list[Receipt]:
    """A team's receipt for each stretch between two edges, of the spans of all teams.

    The edges are in order; what lies outside of them does not count.
    """
    changes: dict[float, list[tuple[Counter[str], str, int]]] = {edge: [] for edge in edges}
    used: Counter[str] = Counter()
    guaranteed: Counter[str] = Counter()
    for counter, spans in ((used, held), (guaranteed, owed)):
        for span in spans:
            start, end = max(span.start, edges[0]), min(span.end, edges[-1])
            if start < end:
                changes.setdefault(start, []).append((counter, span.team, span.gpus))
                changes.setdefault(end, []).append((counter, span.team, -span.gpus))
    found = [Receipt() for _ in edges[1:]]
    moments, slot = sorted(changes), -1
    inner = set(edges[:-1])
    for moment, following in pairwise(moments):
        slot += moment in inner
        for counter, name, gpus in changes[moment]:
            counter[name] += gpus
        _add(found[slot], used, guaranteed, team, following - moment)
    return found


def _add(receipt: Receipt, used: Counter[str], guaranteed: Counter[str], team: str, seconds: float) -> None:
    teams = used.keys() | guaranteed.keys()
    borrowed = sum(max(0, used[name] - guaranteed[name]) for name in teams)
    idle = sum(max(0, guaranteed[name] - used[name]) for name in teams)
    own_idle = max(0, guaranteed[team] - used[team])
    receipt.guaranteed_s += guaranteed[team] * seconds
    receipt.used_s += used[team] * seconds
    receipt.borrowed_s += max(0, used[team] - guaranteed[team]) * seconds
    receipt.lent_s += own_idle * min(1.0, borrowed / idle) * seconds if idle else 0.0
