"""NVIDIA GPUs through the driver's management library (NVML).

They are numbered as `nvidia-smi` does it.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer.agent.errors import SetupError
from trainer.agent.node.topology import Attachment, attachment
from trainer.protocol import GpuFacts, GpuUse

log = logging.getLogger(__name__)

# Names as `nvidia-smi topo -m` prints them, by the level of the nearest common ancestor.
_TOPOLOGY = {0: "same-board", 10: "pix", 20: "pxb", 30: "phb", 40: "node", 50: "sys"}
DRIVER = Path("/dev/nvidiactl")  # there wherever the driver is, also in a container that may use it


@functools.cache
def nvml_library() -> Any:
    """Return the library, or None.

    It is initialised once (that wakes the driver, which takes its time). Raises SetupError where there is a
    driver that does not answer.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
    except ImportError as error:
        return _no_library(error)
    except pynvml.NVMLError as error:
        return _no_library(error)
    return pynvml


def _no_library(error: Exception) -> None:
    if DRIVER.exists():
        raise SetupError(
            f"this machine has an NVIDIA driver, but its GPUs cannot be listed: {error}. See what nvidia-smi "
            "says; after an update of the driver the machine must be restarted"
        )


def find_gpus(host_memory_bytes: int) -> tuple[GpuFacts, ...]:
    """Return every GPU that can be offered, in the order of the PCI bus.

    Each has its memory and its links to the others. A GPU without memory of its own (a unified
    one) has the host's. Raises SetupError where there are GPUs and none can be offered.
    """
    nvml = nvml_library()
    if nvml is None:
        return ()
    try:
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        raise SetupError(f"the GPUs of this machine cannot be listed: {error}; see nvidia-smi") from error
    wanted = [index for index in range(count) if _is_wanted(nvml, index)]
    handles = [handle for index in wanted if (handle := _usable(nvml, index)) is not None]
    if wanted and not handles:
        raise SetupError(f"none of the {len(wanted)} GPUs of this machine can be used; the log says why")
    return tuple(_facts(nvml, handles, index, host_memory_bytes) for index in range(len(handles)))


def _is_wanted(nvml: Any, index: int) -> bool:
    """CUDA_VISIBLE_DEVICES of the agent leaves GPUs to others, by index or UUID."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return True
    names = [name.strip() for name in named.split(",") if name.strip()]
    if str(index) in names:
        return True
    try:
        uuid = _text(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index)))
    except nvml.NVMLError:
        return False
    return any(uuid.startswith(name) for name in names)


def _usable(nvml: Any, index: int) -> Any:
    """Return the GPU's handle, or None if trainings cannot have it as a whole.

    In that case a line is logged.
    """
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        nvml.nvmlDeviceGetUUID(handle)
    except nvml.NVMLError as error:
        log.error("a GPU does not answer and is not offered", extra={"gpu": index, "error": str(error)})
        return None
    try:
        divided = nvml.nvmlDeviceGetMigMode(handle)[0] == nvml.NVML_DEVICE_MIG_ENABLE
    except nvml.NVMLError:
        divided = False  # it cannot be divided
    if divided:
        log.error("a GPU in MIG mode is not offered: nvidia-smi -mig 0 makes it whole", extra={"gpu": index})
        return None
    return handle


def _facts(nvml: Any, handles: Sequence[Any], index: int, host_memory_bytes: int) -> GpuFacts:
    handle = handles[index]
    try:
        memory_bytes, _ = _memory(nvml, handle)
    except nvml.NVMLError:
        memory_bytes = host_memory_bytes
    others = {str(number): other for number, other in enumerate(handles) if number != index}
    pci = {number: _on_the_bus(nvml, handle, other) for number, other in others.items()}
    linked = {number: "nvlink" for number, other in others.items() if _is_linked(nvml, handle, other)}
    numa, socket = _attachment(nvml, handle)
    return GpuFacts(
        index=index,
        model=_text(nvml.nvmlDeviceGetName(handle))[:100],
        memory_bytes=memory_bytes,
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        links=pci | linked,
        pci=pci,
        numa=numa,
        socket=socket,
    )


def _attachment(nvml: Any, handle: Any) -> Attachment:
    try:
        return attachment(_text(nvml.nvmlDeviceGetPciInfo(handle).busId))
    except nvml.NVMLError:
        return Attachment()


def _memory(nvml: Any, handle: Any) -> tuple[int, int]:
    """Return the bytes that programs can have together, and those that they have.

    The driver keeps some for itself and counts them in the total. One that is too old to tell how many left
    them out of the total.
    """
    try:
        found = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
        return int(found.total) - int(found.reserved), int(found.used)
    except nvml.NVMLError:
        found = nvml.nvmlDeviceGetMemoryInfo(handle)
        return int(found.total), int(found.used)


def _is_linked(nvml: Any, one: Any, other: Any) -> bool:
    """Do two GPUs reach each other by NVLink, directly or through a switch?"""
    try:
        status = nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except nvml.NVMLError:
        return False  # asked of a driver that is too old: the relation on the bus is still known
    return bool(status == nvml.NVML_P2P_STATUS_OK)


def _on_the_bus(nvml: Any, one: Any, other: Any) -> str:
    try:
        return _TOPOLOGY.get(int(nvml.nvmlDeviceGetTopologyCommonAncestor(one, other)), "sys")
    except nvml.NVMLError:
        return "sys"


def gpu_use(gpus: Sequence[GpuFacts]) -> tuple[GpuUse, ...]:
    """Load and memory of these GPUs now; what cannot be read is 0."""
    nvml = nvml_library()
    return () if nvml is None else tuple(_use(nvml, gpu) for gpu in gpus)


def _use(nvml: Any, gpu: GpuFacts) -> GpuUse:
    util, used = 0.0, 0
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(gpu.uuid)
        util = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        _, used = _memory(nvml, handle)
    except nvml.NVMLError:
        pass
    return GpuUse(index=gpu.index, util=util, memory_used_bytes=used)


def driver_facts() -> dict[str, str]:
    """Versions of driver and CUDA, where there are any."""
    nvml = nvml_library()
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
