"""The rules of CUDA's caching allocator, for what a CPU allocated.

Rules as in `c10/cuda/CUDACachingAllocator.cpp` of pytorch/pytorch: sizes are rounded to 512 bytes, blocks up
to 1 MiB come from segments of 2 MiB, others up to 10 MiB from 20 MiB, larger ones from segments of their own
in steps of 2 MiB; the smallest free block that is large enough is taken, and split where what is left can be
used; free neighbours of a segment are joined. Segments stay reserved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

MIB = 2**20
ROUNDED, SMALL, MEDIUM = 512, MIB, 10 * MIB
SMALL_SEGMENT, MEDIUM_SEGMENT, STEP = 2 * MIB, 20 * MIB, 2 * MIB


class Event(NamedTuple):
    """An allocation, or with a negative size a release, at an address."""

    address: int
    size: int


@dataclass(slots=True)
class Block:
    """A part of a segment, in bytes."""

    segment: int
    start: int
    size: int
    small: bool


class CachingAllocator:
    """Segments, and their blocks in use and free."""

    def __init__(self) -> None:
        self.free: list[Block] = []
        self.used: dict[int, Block] = {}
        self.segments = 0
        self.reserved = 0

    def allocate(self, address: int, size: int) -> None:
        size = _rounded(max(size, 1), ROUNDED)
        small = size <= SMALL
        fitting = [block for block in self.free if block.small == small and block.size >= size]
        block = min(fitting, key=lambda one: one.size) if fitting else self._segment(size, small)
        if fitting:
            self.free.remove(block)
        left = block.size - size
        if left >= (ROUNDED if small else SMALL + 1):
            self.free.append(Block(block.segment, block.start + size, left, small))
            block = Block(block.segment, block.start, size, small)
        self.used[address] = block

    def release(self, address: int) -> None:
        """Addresses from before are none of ours."""
        block = self.used.pop(address, None)
        if block is None:
            return
        for other in [one for one in self.free if one.segment == block.segment]:
            if other.start in (block.start + block.size, block.start - other.size):
                self.free.remove(other)
                start = min(block.start, other.start)
                block = Block(block.segment, start, block.size + other.size, block.small)
        self.free.append(block)

    def _segment(self, size: int, small: bool) -> Block:
        whole = SMALL_SEGMENT if small else MEDIUM_SEGMENT if size < MEDIUM else _rounded(size, STEP)
        self.segments += 1
        self.reserved += whole
        return Block(self.segments, 0, whole, small)


def reserved(events: Iterable[Event], scale: int) -> int:
    """Bytes that are reserved where every tensor is so many times as large."""
    allocator = CachingAllocator()
    for address, size in events:
        if size > 0:
            allocator.allocate(address, size * scale)
        else:
            allocator.release(address)
    return allocator.reserved


def events_of(step: Callable[[], None]) -> list[Event]:
    """Return the allocations and releases of a step on the CPU, in their order."""
    from torch._C._profiler import _EventType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    waiting = list(profiled.profiler.kineto_results.experimental_event_tree())
    found: list[tuple[int, Event]] = []
    while waiting:
        event = waiting.pop()
        waiting.extend(event.children)
        if event.typed[0] == _EventType.Allocation:
            moved = event.typed[1]
            found.append((event.start_time_ns, Event(moved.ptr, moved.alloc_size)))
    return [event for _, event in sorted(found, key=lambda one: one[0])]


def _rounded(size: int, step: int) -> int:
    return -(-size // step) * step
