"""How busy each GPU or CPU slot is now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from trainer.agent.node.gpus import gpu_use
from trainer.protocol import GpuFacts, GpuUse


class Load(NamedTuple):
    """Processor time of a training so far (s), and the memory it holds."""

    processor_s: float
    memory_bytes: int


Loads = Mapping[str, tuple[Load, Sequence[int]]]


class SlotUse:
    """Load of the GPUs or CPU slots.

    That of GPUs comes from the driver, that of CPU slots from the processor time of the
    trainings that hold them.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}  # training -> (monotonic time, processor seconds)

    def read(self, slots: Sequence[GpuFacts], loads: Callable[[], Loads]) -> tuple[GpuUse, ...]:
        """Return the use of every slot.

        loads: the load of each training, with its slots, which share the load evenly; asked for
        CPU slots alone.
        """
        if slots[0].model != "cpu":
            return gpu_use(slots)
        use = {slot: GpuUse(index=slot, util=0.0, memory_used_bytes=0) for slot in range(len(slots))}
        found = loads()
        for training, (load, held) in found.items():
            own = [slot for slot in held if slot in use]
            cores = self._cores(training, load.processor_s)
            for slot in own:
                share = min(1.0, cores / len(own))
                use[slot] = GpuUse(index=slot, util=share, memory_used_bytes=load.memory_bytes // len(own))
        self._seen = {training: seen for training, seen in self._seen.items() if training in found}
        return tuple(use.values())

    def _cores(self, training: str, processor_s: float) -> float:
        """Cores in use since the last reading."""
        now = time.monotonic()
        then, before = self._seen.get(training, (now, processor_s))
        self._seen[training] = (now, processor_s)
        return max(0.0, processor_s - before) / max(now - then, 1e-3)
