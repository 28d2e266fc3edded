"""How much memory this process used at most, and of how much."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import torch


def peak_bytes(device: torch.device) -> int:
    """GPU: bytes the allocator reserved at most. CPU: the process's largest resident set."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_reserved(device))
    return resident_peak_bytes()


def resident_peak_bytes() -> int:
    """The largest resident set of this process. Linux keeps getrusage's figure across exec, so a trainer
    would inherit its parent's peak; the high-water mark in /proc belongs to this program alone."""
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
