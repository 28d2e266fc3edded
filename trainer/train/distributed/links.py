"""All-reduces between pairs of GPUs, as a program of its own.

`python -m trainer.train.distributed.links RUN_DIR`: RUN_DIR/pairs.json names the pairs by rank, and
RUN_DIR/links.json gets the figures. There is one process for each GPU or CPU slot. They meet over gloo;
between GPUs, each pair's tensors go over NCCL.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from trainer.checkpoint import write_atomically

MIB = 2**20
GPU_BYTES = (64 * MIB, 512 * MIB)
CPU_BYTES = (2 * MIB, 16 * MIB)  # slots share one memory, which is slower and smaller
REPEATS = 5
MEET_WITHIN = timedelta(seconds=50)


def main(run: Path) -> None:
    order = json.loads((run / "pairs.json").read_text(encoding="utf-8"))
    ranks = 1 + max(rank for pair in order["pairs"] for rank in pair)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    mp.spawn(_take_part, (ranks, order["pairs"], bool(order["cuda"]), str(run)), nprocs=ranks)


def _take_part(rank: int, ranks: int, pairs: Sequence[list[int]], cuda: bool, run: str) -> None:
    """Measure the pairs of which this process is the first; rank 0 writes."""
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.set_num_threads(1)
    store = dist.FileStore(f"{run}/.store", ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=MEET_WITHIN)
    found = []
    for pair in pairs:
        group = dist.new_group(pair, backend="nccl" if cuda else "gloo")
        if rank in pair:
            sizes = GPU_BYTES if cuda else CPU_BYTES
            figures = speed(sizes, [_seconds(size, device, group) for size in sizes])
            if rank == pair[0]:
                found.append({"first": pair[0], "second": pair[1], **figures})
        dist.barrier()
    every: list[list[dict[str, Any]]] = [[]] * ranks
    dist.gather_object(found, every if rank == 0 else None)
    if rank == 0:
        links = [figures for of_rank in every for figures in of_rank]
        write_atomically(Path(run) / "links.json", json.dumps({"links": links}))
    os._exit(0)  # groups' destructors could wait for each other for ever (`process_group`)


def _seconds(size: int, device: torch.device, group: Any) -> float:
    """Return the median seconds of an all-reduce without the first, which connects."""
    data, took = torch.zeros(size // 4, device=device), []
    for _ in range(1 + REPEATS):
        began = time.perf_counter()
        dist.all_reduce(data, group=group)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        took.append(time.perf_counter() - began)
    return median(took[1:])


def speed(sizes: Sequence[int], seconds: Sequence[float]) -> dict[str, float]:
    """Return bytes/s and latency from the times of a small and a large all-reduce.

    Each of the two processes sends as many bytes as the tensor has. Time that is not proportional to
    them is latency; where the large tensor took no longer, all counts as transfer.
    """
    (small, large), (quick, slow) = sizes, seconds
    if slow <= quick:
        return {"bytes_per_s": large / slow, "latency_s": 0.0}
    bytes_per_s = (large - small) / (slow - quick)
    latency_s = quick - small / bytes_per_s
    if latency_s < 0:
        return {"bytes_per_s": large / slow, "latency_s": 0.0}
    return {"bytes_per_s": bytes_per_s, "latency_s": latency_s}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
