"""Measurements that a node makes by itself before it joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRun:
    """One training of a speed test.

    params: of the recipe `sft`; every sample had its full length.
    """

    params: dict[str, Any]
    tokens_per_s: float
    peak_memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTest:
    """A few training steps of an idle node on one of its GPUs or CPU slots.

    test: its name, the same in every report. startup_s: of the process, up to the first step. busy_cores:
    that other processes kept busy meanwhile. problem: why there are no figures.
    """

    test: str
    gpu_model: str
    model: str = ""
    runs: tuple[SpeedRun, ...] = ()
    startup_s: float | None = None
    busy_cores: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTest:
    """All-reduces between two GPUs or CPU slots of an idle node.

    first, second: their indices. bytes_per_s: sent and received by each, which is what a ring of two makes of
    a tensor. latency_s: what does not grow with the tensor.
    """

    first: int
    second: int
    bytes_per_s: float
    latency_s: float
