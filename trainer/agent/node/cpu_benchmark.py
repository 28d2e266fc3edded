"""Measure what one CPU slot can do.

`python -m trainer.agent.node.cpu_benchmark` prints it as JSON. It is a process of its own,
because it needs torch and the agent must stay small. It takes under 1 s of work on one thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable


def _fastest_s(work: Callable[[], object], budget_s: float) -> float:
    """Return the seconds of the fastest repetition within the budget.

    It is the one least disturbed by neighbours.
    """
    work()
    fastest, end = float("inf"), time.perf_counter() + budget_s
    while (start := time.perf_counter()) < end:
        work()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def measure_slot() -> dict[str, float]:
    """Measure one CPU slot.

    peak_flops: float32 matrix products, FLOP/s.
    bandwidth_bytes_s: a copy, bytes read and written.
    """
    import torch

    torch.set_num_threads(1)
    size = 512
    left, right, product = (torch.ones(size, size) for _ in range(3))
    product_s = _fastest_s(lambda: torch.mm(left, right, out=product), 0.3)
    source = torch.ones(16 * 2**20)
    target = torch.empty_like(source)
    copy_s = _fastest_s(lambda: target.copy_(source), 0.3)
    return {
        "peak_flops": 2 * size**3 / product_s,
        "bandwidth_bytes_s": 2 * source.numel() * source.element_size() / copy_s,
    }


if __name__ == "__main__":
    print(json.dumps(measure_slot()))
