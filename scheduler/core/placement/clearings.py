"""The ways to clear GPUs of each node.

They are found anew only once what the node holds has changed. A decision asks the same of many nodes for
many jobs, and each of its starts changes one or two of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from operator import itemgetter
from typing import NamedTuple

from scheduler.core.placement.gpu_index import FreeGpuIndex
from scheduler.core.placement.levels import TopologyLevel, indices_of
from scheduler.core.placement.topology import GangPlace, class_of, disruption, gang_places, least_harm
from scheduler.core.types import JobInfo, NodeInfo

NOBODY = -inf  # below this priority


class Asks(NamedTuple):
    """A job's wish for one node; the victims are of lower priority than `below`.

    lowest: as of `disruption`; where it is given, of each node only the way counts that harms least.
    """

    gpus: int
    level: TopologyLevel
    below: float = NOBODY
    lowest: float | None = None


class Priced(NamedTuple):
    """A place with what it costs; the smallest is the best, the place aside."""

    cost: float
    victims: int
    names: list[str]
    node: str
    place: GangPlace


UNLIKE = itemgetter(0, 1, 2, 3)  # all of Priced but the place


@dataclass(slots=True, eq=False)
class Ways:
    """The places on one node, at least one.

    lowest: the lowest priority among their victims.
    """

    node: str
    free: int  # GPUs
    places: tuple[GangPlace, ...]
    lowest: float
    _priced: dict[float, list[Priced]] = field(default_factory=dict)

    def priced(self, lowest: float) -> list[Priced]:
        """The places, the cheapest first; `lowest` as of `disruption`."""
        if lowest not in self._priced:
            self._priced[lowest] = sorted(
                (
                    Priced(
                        disruption(place.victims, lowest),
                        len(place.victims),
                        sorted(job.id for job in place.victims),
                        place.node,
                        place,
                    )
                    for place in self.places
                ),
                key=UNLIKE,
            )
        return self._priced[lowest]


class _Nodes:
    """The nodes that have what is asked. `changed`: those to be looked at anew."""

    __slots__ = ("changed", "ways")

    def __init__(self, nodes: Iterable[str]) -> None:
        self.changed = set(nodes)
        self.ways: dict[str, Ways] = {}


class Clearings:
    """The nodes of one GPU model with what is free on them by now, and who might go."""

    def __init__(self, free: FreeGpuIndex, victims: Iterable[JobInfo]) -> None:
        self.free = free
        self.victims: dict[str, list[JobInfo]] = defaultdict(list)  # by node
        for job in victims:
            for node in _nodes_of(job):
                self.victims[node].append(job)
        self._asked: dict[Asks, _Nodes] = {}

    def ways(self, asks: Asks, unfit: Collection[str], only_node: str | None = None) -> list[Ways]:
        """Ways to get what is asked, on each node that has some."""
        found = self._asked.get(asks)
        if found is None:
            found = self._asked[asks] = _Nodes(self.free.nodes)
        for name in found.changed:
            ways = self._look(self.free.nodes[name], asks)
            if ways.places:
                found.ways[name] = ways
            else:
                found.ways.pop(name, None)
        found.changed.clear()
        if only_node is not None:
            return [found.ways[only_node]] if only_node in found.ways.keys() - unfit else []
        return [ways for name, ways in found.ways.items() if name not in unfit]

    def changed(self, nodes: Iterable[str]) -> None:
        """GPUs of these nodes were taken, or given back."""
        known = self.free.nodes.keys() & nodes
        for found in self._asked.values():
            found.changed |= known

    def stopped(self, victim: JobInfo) -> None:
        """The job goes, so it cannot go again."""
        nodes = _nodes_of(victim)
        for node in nodes:
            self.victims[node] = [job for job in self.victims[node] if job.id != victim.id]
        self.changed(nodes)

    def _look(self, node: NodeInfo, asks: Asks) -> Ways:
        free = indices_of(self.free.free[node.id])
        able = [job for job in self.victims[node.id] if job.priority < asks.below]
        now = node if free == node.free else replace(node, free=free)
        if asks.lowest is None:
            found = tuple(gang_places(now, asks.gpus, asks.level, able))
        else:
            least = least_harm(now, asks.gpus, asks.level, able, asks.lowest)
            found = tuple(place for place in (least,) if place)
        lowest = min((job.priority for place in found for job in place.victims), default=inf)
        return Ways(node.id, len(free), found, lowest)


def closest_free(found: Iterable[Ways]) -> GangPlace | None:
    """The closest place without victims; of equal ones, that on the fullest node."""
    every = ((-place.level, ways.free, ways.node, place) for ways in found for place in ways.places)
    best = min(every, key=itemgetter(0, 1, 2), default=None)
    return best[-1] if best else None


def least_harmful(found: Sequence[Ways], lowest: float) -> GangPlace | None:
    """The place with victims of the lowest class, then the cheapest, then the fewest.

    lowest: as of `disruption`.
    """

    def order(priced: Priced) -> tuple[float, float, int, list[str], str]:
        highest = max(map(class_of, priced.place.victims), default=NOBODY)
        return highest, priced.cost, priced.victims, priced.names, priced.node

    best = min((ways.priced(lowest)[0] for ways in found), key=order, default=None)
    return best.place if best else None


def best_weighed(found: Sequence[Ways], alpha: float) -> GangPlace | None:
    """Return the place that is best by its level and its cost.

    The level weighs `alpha`, the cost is taken beside the dearest.
    """
    lowest = _lowest(found)
    every = [priced for ways in found for priced in ways.priced(lowest)]
    dearest = max((priced.cost for priced in every), default=0.0) or 1.0

    def order(priced: Priced) -> tuple[float, int, list[str], str]:
        score = (1 - alpha) * priced.cost / dearest - alpha * priced.place.level / TopologyLevel.NVLINK
        return score, priced.victims, priced.names, priced.node

    best = min(every, key=order, default=None)
    return best.place if best else None


def _lowest(found: Iterable[Ways]) -> float:
    lowest = min((ways.lowest for ways in found), default=inf)
    return 0.0 if lowest == inf else lowest


def _nodes_of(job: JobInfo) -> set[str]:
    return {name for name, _ in (job.holds.gpus if job.holds else ())}
