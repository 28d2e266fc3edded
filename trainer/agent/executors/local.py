"""This machine, as executors have it whose trainings run on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainer.agent.executors.base import ExecutorOptions
from trainer.agent.node.discovery import discover
from trainer.agent.node.gpu_idle import busy
from trainer.agent.node.torch_check import check_torch
from trainer.agent.node.usage import Loads, SlotUse
from trainer.protocol import GpuFacts, GpuUse, NodeFacts


class LocalMachine:
    """Its GPUs, or CPU slots where it has none: `facts` of executors, and `LocalGpus`."""

    def __init__(self, options: ExecutorOptions) -> None:
        self._options, self._slot_use = options, SlotUse()

    def facts(self) -> NodeFacts:
        """What is found here. Raises SetupError."""
        return discover(self._options.folder, self._options.slots, self._options.topology)

    def check(self, facts: NodeFacts) -> None:
        """Raise SetupError if torch cannot use the GPUs."""
        if facts.has_gpus:
            check_torch(facts.gpus, self._options.user)

    def occupant(self, gpus: Sequence[GpuFacts]) -> str:
        """Who uses these GPUs, by their memory; CPU slots are always free."""
        return busy([gpu for gpu in gpus if gpu.model != "cpu"])

    def use(self, slots: Sequence[GpuFacts], loads: Callable[[], Loads]) -> tuple[GpuUse, ...]:
        """How busy they are: by the driver, or by the trainings that hold them."""
        return self._slot_use.read(slots, loads)
