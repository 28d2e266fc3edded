"""Are the GPUs of a claim really free?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from trainer.agent.errors import Declined
from trainer.agent.node.gpus import gpu_use
from trainer.protocol import GpuFacts

GIB = 2**30
LEAVE_WITHIN_S = 30.0  # a killed training's memory is freed some seconds after its process is gone
_LOOK_EVERY_S = 0.5
_USED_BY_NOBODY = 0.1  # of the memory: what the driver and a screen take
_USED_BY_NOBODY_BYTES = 2 * GIB


def await_vacancy(occupant: Callable[[], str], stopping: threading.Event) -> None:
    """Wait until nobody uses the GPUs of a claim.

    Raises Declined if somebody stays: the training would run out of memory for no fault of its
    own, and its measurements would be wrong.
    occupant: names who still has them, empty if nobody.
    """
    deadline = time.monotonic() + LEAVE_WITHIN_S
    while (who := occupant()) and not stopping.is_set():
        if time.monotonic() > deadline:
            raise Declined(who)
        stopping.wait(_LOOK_EVERY_S)


def busy(gpus: Sequence[GpuFacts]) -> str:
    """Return who uses these GPUs though no training should; empty if nobody does."""
    for gpu, use in zip(gpus, gpu_use(gpus), strict=False):
        if use.memory_used_bytes > max(_USED_BY_NOBODY_BYTES, _USED_BY_NOBODY * gpu.memory_bytes):
            return (
                f"{use.memory_used_bytes / GIB:.1f} GiB of GPU {gpu.index} ({gpu.uuid}) are in use, though no"
                " job of the portal runs there; see nvidia-smi on the node"
            )
    return ""
