"""How close GPUs of one node lie, and how close a job asks for.

Only GPUs of one node are close or not: of a gang over several nodes, each node's share is meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from knowledge.core.domain.types import Option
from knowledge.core.recommend.link_levels import rate_at
from scheduler.core.types import GpuId, GpuSite, JobInfo, Topology

LEAST_TOLD = 0.005  # of the speed: less is nothing to talk of
AS_GOOD = 0.95  # of the tokens/s at the closest level: what less closeness may cost and not be asked for


class TopologyLevel(IntEnum):
    """Links between GPUs, from the loosest to the closest."""

    NODE = 1
    SOCKET = 2
    NUMA = 3
    PCIE = 4
    NVLINK = 5

    @property
    def word(self) -> str:
        """The level's name over REST, in options and in executions."""
        return self.name.lower()

    @property
    def phrase(self) -> str:
        """The part that GPUs at this level share, in words."""
        return _PHRASES[self]

    @classmethod
    def of_word(cls, word: str) -> TopologyLevel:
        """Raises KeyError."""
        return cls[word.upper()]


_PHRASES = {
    TopologyLevel.NODE: "machine",
    TopologyLevel.SOCKET: "socket",
    TopologyLevel.NUMA: "NUMA node",
    TopologyLevel.PCIE: "PCIe switch",
    TopologyLevel.NVLINK: "NVLink group",
}
CLOSE = tuple(sorted(TopologyLevel, reverse=True))[:-1]  # all but the node, the closest first


class Closeness(NamedTuple):
    """A job's wish with one of its options; `topology` is never automatic."""

    topology: Topology
    level: TopologyLevel

    @property
    def required(self) -> TopologyLevel:
        """The level below which the option does not start."""
        return self.level if self.topology is Topology.GUARANTEED else TopologyLevel.NODE


ANY = Closeness(Topology.NONE, TopologyLevel.NODE)


def asked(job: JobInfo, option: Option) -> Closeness:
    """How close the GPUs of this option shall lie. One GPU a node is close to itself."""
    return ANY if job.topology is Topology.NONE else closeness(job.topology, job.level, option)


def closeness(topology: Topology, level: int | None, option: Option) -> Closeness:
    """The effect on the option of asking for this level."""
    if option.gpus <= option.nodes or topology is Topology.NONE:
        return ANY
    if topology is Topology.AUTOMATIC:
        least = worthwhile(option.by_level)
        return ANY if least is TopologyLevel.NODE else Closeness(Topology.BEST_EFFORT, least)
    return Closeness(topology, TopologyLevel(level or TopologyLevel.NODE))


def reached(sites: Mapping[str, Sequence[GpuSite]], gpus: Collection[GpuId]) -> TopologyLevel | None:
    """How close the GPUs of a gang lie on the node where they lie loosest.

    sites: of each node, by index. None if each node has one alone, or it is unknown where they sit.
    """
    shares: dict[str, list[int]] = defaultdict(list)
    for node, index in gpus:
        shares[node].append(index)
    several = {node: indices for node, indices in shares.items() if len(indices) > 1}
    if not several or not all(sites.get(node) for node in several):
        return None
    return min(closest(sites[node], indices, len(indices))[0] for node, indices in several.items())


def worthwhile(by_level: Mapping[str, float]) -> TopologyLevel:
    """The least level at which a job is about as fast as at the closest.

    by_level: predicted tokens/s; where nothing is predicted, closeness is not asked for.
    """
    if not by_level:
        return TopologyLevel.NODE
    best = max(by_level.values())
    enough = (TopologyLevel.of_word(word) for word, rate in by_level.items() if rate >= AS_GOOD * best)
    return min(enough, default=TopologyLevel.NODE)


def worth_of_closeness(topology: Topology, level: int | None, option: Option) -> str:
    """The gain of an option from closeness, in words.

    Empty where nothing is predicted, or closeness makes no difference.
    """
    if option.gpus <= option.nodes or not option.by_level:
        return ""
    asks, gpus = closeness(topology, level, option), option.gpus // option.nodes
    rates = {TopologyLevel.of_word(word): rate for word, rate in option.by_level.items()}
    here = max(rates.values()) if asks is ANY else rate_at(option.by_level, asks.level.word)
    looser = [rate for found, rate in rates.items() if asks is ANY or found < asks.level]
    slower = [max(0.0, 1 - rate / here) for rate in looser] if here else []
    if max(slower, default=0.0) < LEAST_TOLD:
        return ""
    if asks is ANY:
        return f"Its {gpus} GPUs may lie anywhere on a node; far apart they are {max(slower):.0%} slower."
    low, high = f"{min(slower):.0%}", f"{max(slower):.0%}"
    apart = high if low == high else f"{low} to {high}"
    waits = "it waits for" if asks.topology is Topology.GUARANTEED else "where it can, it takes"
    without = f"{gpus} GPUs without one {asks.level.phrase} in common: {apart} slower"
    return f"{without}; {waits} {gpus} that have one."


def closest(
    sites: Sequence[GpuSite], indices: Collection[int], count: int
) -> tuple[TopologyLevel, tuple[int, ...]]:
    """Return the closest `count` of these GPUs and their level.

    Of the groups that hold them the smallest is taken, then the lowest. There must be at least
    `count` GPUs. Without sites nothing is closer than the node.
    """
    level, chosen = closest_of(tuple(sites), mask_of(indices), count)
    return level, indices_of(chosen)


def closest_of(sites: tuple[GpuSite, ...], gpus: int, count: int) -> tuple[TopologyLevel, int]:
    """Do as `closest` does, for GPUs that are bits of a number.

    Thousands of sets are asked about.
    """
    for level, groups in _groups(sites):
        held = [group & gpus for group in groups if (group & gpus).bit_count() >= count]
        if held:
            return level, _lowest(min(held, key=lambda group: (group.bit_count(), group & -group)), count)
    return TopologyLevel.NODE, _lowest(gpus, count)


def sparing_of(sites: tuple[GpuSite, ...], gpus: int, spared: int, count: int, level: TopologyLevel) -> int:
    """So many of these GPUs in a group of this level, or closer.

    They hold the fewest of `spared`.

    All are bits of numbers. Of groups alike the smallest is taken, then the lowest; 0: there is none.
    """
    whole = ((TopologyLevel.NODE, (gpus,)),)
    groups = whole if level <= TopologyLevel.NODE else _groups(sites)
    held = [
        group & gpus
        for found, alike in groups
        for group in alike
        if found >= level and (group & gpus).bit_count() >= count
    ]
    if not held:
        return 0
    best = max(
        held,
        key=lambda group: (min(count, (group & ~spared).bit_count()), -group.bit_count(), -(group & -group)),
    )
    others = _lowest(best & ~spared, count)
    return others | _lowest(best & spared, count - others.bit_count())


def mask_of(indices: Iterable[int]) -> int:
    """GPUs as bits of a number."""
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask


def indices_of(mask: int) -> tuple[int, ...]:
    """The bits of a number as GPUs."""
    return tuple(index for index in range(mask.bit_length()) if mask >> index & 1)


def _lowest(mask: int, count: int) -> int:
    for _ in range(mask.bit_count() - count):
        mask ^= 1 << mask.bit_length() - 1
    return mask


@lru_cache(maxsize=1024)
def _groups(sites: tuple[GpuSite, ...]) -> tuple[tuple[TopologyLevel, tuple[int, ...]], ...]:
    """The groups of GPUs at each level, the closest first."""
    levels = []
    for level in CLOSE:
        groups: dict[int, int] = defaultdict(int)
        for index, site in enumerate(sites):
            name = _group(site, level)
            if name is not None:
                groups[name] |= 1 << index
        levels.append((level, tuple(groups.values())))
    return tuple(levels)


def _group(site: GpuSite, level: TopologyLevel) -> int | None:
    if level is TopologyLevel.NVLINK:
        return site.nvlink
    if level is TopologyLevel.PCIE:
        return site.switch
    return site.numa if level is TopologyLevel.NUMA else site.socket
