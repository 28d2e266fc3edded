"""The free GPUs of one model, indexed by how many each node has free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from copy import copy
from functools import cached_property, lru_cache

from knowledge.core.domain.types import Option
from scheduler.core.placement.levels import (
    TopologyLevel,
    closest,
    closest_of,
    indices_of,
    mask_of,
    sparing_of,
)
from scheduler.core.types import GpuId, NodeInfo

NONE: frozenset[str] = frozenset()
_Needs = tuple[str, float | None, float | None]  # tuning, price, GPU memory


class FreeGpuIndex:
    """Ready nodes of one GPU model.

    `free` has the free GPUs of each node as the bits of a number. Nodes are bits as well, that with the
    smallest id the lowest; `_by_count` holds those with each number of free GPUs.
    """

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self.nodes = {node.id: node for node in nodes}
        self.free = {name: _mask(node.free) if node.free else 0 for name, node in self.nodes.items()}
        self._names, self._bits = _numbered(tuple(self.nodes))
        self._by_count: dict[int, int] = defaultdict(int)
        for name, free in self.free.items():
            self._by_count[free.bit_count()] |= self._bits[name]
        self.total = sum([count * nodes.bit_count() for count, nodes in self._by_count.items()])
        self._most = max(self._by_count, default=0)  # free GPUs that a node has or had
        self.largest = max([node.total for node in nodes], default=0)  # GPUs of a node, free or not
        self._levels: dict[str, dict[int, tuple[TopologyLevel, tuple[int, ...]]]] = defaultdict(dict)
        self._unsuited: dict[_Needs, frozenset[str]] = {}
        self._suited: dict[frozenset[str], frozenset[str]] = {}  # by those that are not

    def copy(self) -> FreeGpuIndex:
        """The same free GPUs, to be used up apart; what holds of whole nodes is shared."""
        other = copy(self)
        other.free = dict(self.free)
        other._by_count = self._by_count.copy()
        other._levels = defaultdict(dict)
        return other

    def suited(self, option: Option) -> frozenset[str] | None:
        """The nodes that the option may take; None if it may take all."""
        unsuited = self.unfit(option)
        if not unsuited:
            return None
        if unsuited not in self._suited:
            self._suited[unsuited] = frozenset(self.nodes.keys() - unsuited)
        return self._suited[unsuited]

    def unfit(self, option: Option, avoids: frozenset[str] = NONE) -> frozenset[str]:
        """Return the nodes that the option must not take.

        They cannot train by its tuning, cost more than it says, hold less, or are to be avoided.
        """
        needs = option.config.tuning, option.price_per_gpu_hour, option.gpu_memory_bytes
        unsuited = self._unsuited.get(needs)
        if unsuited is None:
            unsuited = frozenset([node.id for node in self.nodes.values() if not node.suits(option)])
            self._unsuited[needs] = unsuited
        return unsuited | avoids if avoids else unsuited

    def free_for(self, option: Option, avoids: frozenset[str] = NONE) -> int:
        """Free GPUs of the nodes that are fit."""
        unfit = self.unfit(option, avoids)
        return self.total - sum(self.count(node) for node in unfit) if unfit else self.total

    def count(self, node: str) -> int:
        """Free GPUs of a node, 0 if it is not among these."""
        return self.free.get(node, 0).bit_count()

    def is_free(self, gpu: GpuId) -> bool:
        """Is this GPU of a node free?"""
        node, index = gpu
        return bool(self.free.get(node, 0) >> index & 1)

    def able(self, share: int) -> list[str]:
        """The nodes with this many free GPUs at least."""
        return [node for node, free in self.free.items() if free.bit_count() >= share]

    def sizes(self, option: Option, only_node: str | None, avoids: frozenset[str]) -> list[int]:
        """GPUs of each node that is fit, free or not, largest first."""
        unfit = self.unfit(option, avoids)
        able = [self.nodes[only_node]] if only_node in self.nodes else []
        if only_node is None:
            able = list(self.nodes.values())
        return sorted((node.total for node in able if node.id not in unfit), reverse=True)

    def choose(
        self, share: int, count: int, excluded: Collection[str], *, emptiest: bool
    ) -> list[str] | None:
        """Choose `count` nodes with `share` free GPUs each; None if there are too few.

        The fullest nodes go first, or the emptiest.
        """
        chosen: list[str] = []
        by_count, most = self._by_count, self._most
        for number in range(most, share - 1, -1) if emptiest else range(share, most + 1):
            if by_count[number]:
                chosen += self._first(number, count - len(chosen), excluded)
                if len(chosen) == count:
                    return chosen
        return None

    def anywhere(self, count: int, excluded: Collection[str]) -> list[tuple[str, int]] | None:
        """`count` free GPUs on whatever nodes but those excluded, the emptiest first."""
        chosen: list[tuple[str, int]] = []
        for number in range(self._most, 0, -1):
            for node in self._first(number, -(-count // number), excluded) if self._by_count[number] else ():
                chosen.append((node, min(number, count)))
                count -= number
            if count <= 0:
                return chosen
        return None

    @cached_property
    def sited(self) -> bool:
        """Is it known of any node where its GPUs sit?"""
        return any(node.sites for node in self.nodes.values())

    def pick(self, node: str, share: int) -> tuple[GpuId, ...]:
        """Free GPUs of a node that lie closest together, else the lowest."""
        if self.nodes[node].sites:
            return tuple([(node, index) for index in self._closest(node, share)[1]])
        free = self.free[node]
        if share == 1:  # as most ask
            return ((node, (free & -free).bit_length() - 1),)
        return tuple([(node, index) for index in lowest_of(free, share)])

    def least_of(
        self, spared: FreeGpuIndex, share: int, excluded: Collection[str], level: TopologyLevel
    ) -> str | None:
        """The node with so many free GPUs, the fewest of them free in `spared`, too.

        They lie as close as this level says. Of equal nodes the fullest one is taken, then the smallest id.
        """
        costs: dict[str, int] = {}
        for node in self.able(share):
            if node not in excluded:
                taken = spared.free.get(node, 0)
                if level <= TopologyLevel.NODE:
                    costs[node] = max(0, share - (self.free[node] & ~taken).bit_count())
                elif chosen := sparing_of(self.nodes[node].sites, self.free[node], taken, share, level):
                    costs[node] = (chosen & taken).bit_count()
        return min(costs, key=lambda node: (costs[node], self.count(node), node), default=None)

    def pick_sparing(
        self, spared: FreeGpuIndex, node: str, share: int, level: TopologyLevel
    ) -> tuple[GpuId, ...]:
        """Free GPUs of a node, as close as this level.

        They are those of which the fewest are free in `spared`, too.
        """
        taken = spared.free.get(node, 0)
        chosen = sparing_of(self.nodes[node].sites, self.free[node], taken, share, level)
        return tuple([(node, index) for index in indices_of(chosen)])

    def level(self, node: str, share: int) -> TopologyLevel:
        """How close so many free GPUs of a node can lie; there must be as many."""
        return self._closest(node, share)[0]

    def looser(self, level: TopologyLevel, share: int) -> frozenset[str]:
        """The nodes on which no free GPUs for this share lie so close."""
        close = [node for node in self.able(share) if self.level(node, share) >= level]
        return frozenset(self.free.keys() - close)

    def never(self, level: TopologyLevel, share: int) -> frozenset[str]:
        """The nodes on which no GPUs for this share lie so close, free or not."""
        if level is TopologyLevel.NODE:
            return NONE
        return frozenset(
            name
            for name, node in self.nodes.items()
            if len(node.sites) < share or closest(node.sites, range(len(node.sites)), share)[0] < level
        )

    def _closest(self, node: str, share: int) -> tuple[TopologyLevel, tuple[int, ...]]:
        known = self._levels[node]
        if share not in known:
            level, chosen = closest_of(self.nodes[node].sites, self.free[node], share)
            known[share] = level, indices_of(chosen)
        return known[share]

    def take(self, gpus: tuple[GpuId, ...]) -> None:
        for node, taken in _by_node(gpus):
            if (free := self.free.get(node)) is not None:
                self._set(node, free, free & ~taken)

    def give(self, gpus: tuple[GpuId, ...]) -> None:
        for node, given in _by_node(gpus):
            if (free := self.free.get(node)) is not None:
                self._set(node, free, free | given)

    def _set(self, node: str, before: int, free: int) -> None:
        self.free[node] = free
        if self._levels:
            self._levels.pop(node, None)
        was, count, by_count = before.bit_count(), free.bit_count(), self._by_count
        if was == count:
            return
        self.total += count - was
        if count > self._most:
            self._most = count
        bit = self._bits[node]
        by_count[was] ^= bit
        by_count[count] ^= bit

    def _first(self, number: int, count: int, excluded: Collection[str]) -> list[str]:
        """Up to `count` nodes with exactly this many free GPUs, smallest ids first.

        There must be such a node.
        """
        left = self._by_count[number]
        if count == 1 and not excluded:  # as most ask
            return [self._names[(left & -left).bit_length() - 1]]
        chosen: list[str] = []
        while left and len(chosen) < count:
            lowest = left & -left
            node = self._names[lowest.bit_length() - 1]
            if node not in excluded:
                chosen.append(node)
            left ^= lowest
        return chosen


@lru_cache(maxsize=64)  # most decisions are about the nodes of the one before
def _numbered(names: tuple[str, ...]) -> tuple[list[str], dict[str, int]]:
    """The names in order, and the bit of each."""
    ordered = sorted(names)
    return ordered, {name: 1 << number for number, name in enumerate(ordered)}


def _by_node(gpus: tuple[GpuId, ...]) -> tuple[tuple[str, int], ...]:
    """The nodes, and the GPUs of each as bits of a number."""
    if len(gpus) == 1:
        ((node, index),) = gpus
        return ((node, 1 << index),)
    return _gang_by_node(gpus)


@lru_cache(maxsize=4096)  # what was taken is given back, and soon taken again
def _gang_by_node(gpus: tuple[GpuId, ...]) -> tuple[tuple[str, int], ...]:
    nodes: dict[str, int] = defaultdict(int)
    for node, index in gpus:
        nodes[node] |= 1 << index
    return tuple(nodes.items())


_mask = lru_cache(maxsize=4096)(mask_of)


@lru_cache(maxsize=4096)  # nodes alike have few different sets of free GPUs
def lowest_of(free: int, count: int) -> tuple[int, ...]:
    """The lowest of free GPUs that are bits of a number."""
    return indices_of(free)[:count]
