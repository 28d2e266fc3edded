"""How busy each GPU or CPU slot is now."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import psutil

from trainer.agent.node.gpus import gpu_use
from trainer.protocol import GpuFacts, GpuUse


class SlotUse:
    """Load of all GPUs by the driver; of CPU slots by the processor time of the trainings that hold them."""

    def __init__(self, slots: Sequence[GpuFacts], *, has_gpus: bool) -> None:
        self._slots, self._has_gpus = slots, has_gpus
        self._seen: dict[int, tuple[float, float]] = {}  # leader -> (monotonic time, processor seconds)

    def read(self, holders: Mapping[int, Iterable[int]]) -> tuple[GpuUse, ...]:
        """holders: a training's leader -> its slots, which share its load evenly."""
        if self._has_gpus:
            return gpu_use(self._slots)
        use = {slot: GpuUse(index=slot, util=0.0, memory_used_bytes=0) for slot in range(len(self._slots))}
        for leader, held in holders.items():
            slots = [slot for slot in held if slot in use]
            load, memory = self._load(leader)
            for slot in slots:
                share = min(1.0, load / len(slots))
                use[slot] = GpuUse(index=slot, util=share, memory_used_bytes=memory // len(slots))
        self._seen = {leader: seen for leader, seen in self._seen.items() if leader in holders}
        return tuple(use.values())

    def _load(self, leader: int) -> tuple[float, int]:
        """(cores in use since the last reading, resident bytes) of a process and its descendants."""
        seconds, memory = 0.0, 0
        with suppress(psutil.Error):
            root = psutil.Process(leader)
            for process in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    seconds += times.user + times.system
                    memory += process.memory_info().rss
        now = time.monotonic()
        then, before = self._seen.get(leader, (now, seconds))
        self._seen[leader] = (now, seconds)
        return max(0.0, seconds - before) / max(now - then, 1e-3), memory
