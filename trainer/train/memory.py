"""How much memory this process used at most, and of how much."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import psutil
import torch


def peak_bytes(device: torch.device) -> int:
    """Return the peak memory in bytes.

    GPU: bytes in use at most, as nvidia-smi shows them: those that the allocator reserved at
    most, and those that lie beside it now: the driver's context, kernels, NCCL's buffers. A
    training that leaves too little for these runs out of memory as well.
    CPU: the process's largest resident set.
    """
    if device.type != "cuda":
        return resident_peak_bytes()
    free, total = torch.cuda.mem_get_info(device)
    beside = max(0, total - free - torch.cuda.memory_reserved(device))
    return int(min(total, torch.cuda.max_memory_reserved(device) + beside))


def forget_loading(device: torch.device) -> None:
    """Count memory from here on.

    Memory that loading left in the allocator's cache is given back before memory runs out.
    """
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def resident_peak_bytes() -> int:
    """Return the largest resident set of this process.

    Linux keeps getrusage's figure across exec, so a trainer would inherit its parent's peak;
    the high-water mark in /proc belongs to this program alone.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def capacity_bytes(device: torch.device) -> int | None:
    """All memory of the GPU; a CPU slot has no limit of its own."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return None


def free_bytes(device: torch.device) -> int:
    """Memory that the GPU, or the host, could still give."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)
