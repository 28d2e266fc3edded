"""The played allocator reserves what PyTorch's documented rules make of a few blocks."""

from __future__ import annotations

import random
from itertools import pairwise

from benchmarks.trainer.caching_allocator import MIB, CachingAllocator, Event, reserved


def test_sizes_are_rounded_and_small_blocks_share_a_segment() -> None:
    assert reserved([Event(1, 1), Event(2, 512), Event(3, MIB)], 1) == 2 * MIB
    assert reserved([Event(1, 2 * MIB)], 1) == 20 * MIB
    assert reserved([Event(1, 11 * MIB + 1)], 1) == 12 * MIB


def test_a_freed_block_serves_what_fits_and_is_split_for_less() -> None:
    fits = [Event(1, 40 * MIB), Event(1, -40 * MIB), Event(2, 30 * MIB), Event(3, 8 * MIB)]
    assert reserved(fits, 1) == 40 * MIB
    too_large = [Event(1, 40 * MIB), Event(1, -40 * MIB), Event(2, 41 * MIB)]
    assert reserved(too_large, 1) == 82 * MIB  # in steps of 2 MiB, and the first stays


def test_neighbours_are_joined_when_they_are_free() -> None:
    split = [Event(1, 40 * MIB), Event(1, -1), Event(2, 20 * MIB), Event(3, 20 * MIB)]
    again = [Event(3, -1), Event(2, -1), Event(4, 40 * MIB)]
    assert reserved([*split, *again], 1) == 40 * MIB


def test_blocks_never_overlap_and_none_is_lost() -> None:
    chance, allocator, live = random.Random(1), CachingAllocator(), list[int]()
    for address in range(2000):
        allocator.allocate(address, chance.choice((100, 3000, 2 * MIB, 5 * MIB, 30 * MIB, 70 * MIB)))
        live.append(address)
        while len(live) > 40 or (live and chance.random() < 0.45):
            allocator.release(live.pop(chance.randrange(len(live))))
    places: dict[int, list[tuple[int, int]]] = {}
    for block in [*allocator.free, *allocator.used.values()]:
        places.setdefault(block.segment, []).append((block.start, block.start + block.size))
    for parts in places.values():
        ordered = sorted(parts)
        assert ordered[0][0] == 0
        assert all(end == start for (_, end), (start, _) in pairwise(ordered))
    assert sum(max(parts)[1] for parts in places.values()) == allocator.reserved
