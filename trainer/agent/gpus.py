"""NVIDIA GPUs through the driver's management library; without library, driver or GPU there are none."""

from __future__ import annotations

import functools
import logging
from typing import Any

from trainer.protocol import GpuFacts, GpuUse

log = logging.getLogger(__name__)

# Names as `nvidia-smi topo -m` prints them, by the level of the nearest common ancestor.
_TOPOLOGY = {0: "same-board", 10: "pix", 20: "pxb", 30: "phb", 40: "node", 50: "sys"}


@functools.cache
def _library() -> Any:
    """The library, initialised once (that wakes the driver, which takes its time), or None."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except ImportError:
        return None
    except pynvml.NVMLError:
        return None
    return pynvml


def find_gpus() -> tuple[GpuFacts, ...]:
    """Every GPU with its memory and its links to the others, in the order of the PCI bus."""
    nvml = _library()
    if nvml is None:
        return ()
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return tuple(_facts(nvml, index, handles) for index in range(len(handles)))
    except nvml.NVMLError as error:
        log.warning("GPUs could not be listed", extra={"error": str(error)})
        return ()


def _facts(nvml: Any, index: int, handles: list[Any]) -> GpuFacts:
    handle = handles[index]
    return GpuFacts(
        index=index,
        model=_text(nvml.nvmlDeviceGetName(handle))[:100],
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        links={
            str(other): _link(nvml, handle, handles[other]) for other in range(len(handles)) if other != index
        },
    )


def _link(nvml: Any, one: Any, other: Any) -> str:
    """`nvlink` where peers reach each other that way (directly or by a switch), else the PCI relation."""
    try:
        if (
            nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
            == nvml.NVML_P2P_STATUS_OK
        ):
            return "nvlink"
    except nvml.NVMLError:
        pass  # asked of a driver that is too old: the relation on the bus is still known
    try:
        return _TOPOLOGY.get(int(nvml.nvmlDeviceGetTopologyCommonAncestor(one, other)), "sys")
    except nvml.NVMLError:
        return "sys"


def gpu_use(count: int) -> tuple[GpuUse, ...]:
    """Load and memory of the first `count` GPUs now; what cannot be read is 0."""
    nvml = _library()
    if nvml is None:
        return ()
    return tuple(_use(nvml, index) for index in range(count))


def _use(nvml: Any, index: int) -> GpuUse:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        util = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        return GpuUse(
            index=index, util=util, memory_used_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
        )
    except nvml.NVMLError:
        return GpuUse(index=index, util=0.0, memory_used_bytes=0)


def driver_facts() -> dict[str, str]:
    """Versions of driver and CUDA, where there are any."""
    nvml = _library()
    if nvml is None:
        return {}
    try:
        cuda = int(nvml.nvmlSystemGetCudaDriverVersion())
        return {
            "nvidia_driver": _text(nvml.nvmlSystemGetDriverVersion()),
            "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
        }
    except nvml.NVMLError:
        return {}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
