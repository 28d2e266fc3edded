"""Large random cluster states for benchmarks, the same for the same seed."""

from __future__ import annotations

import random

from knowledge.core.domain.types import Config, Interval, Option, Source
from scheduler.core.types import ClusterState, Holding, JobInfo, NodeInfo

NODE_GPUS = 8


def option(gpu_model: str, gpus: int, duration_s: float, rate: float) -> Option:
    config = Config(
        model_name="m", tuning="lora", gpu_model=gpu_model, number_gpus=gpus,
        number_nodes=-(-gpus // NODE_GPUS), tokens_per_sample=512, per_device_batch_size=1,
    )  # fmt: skip
    return Option(
        config=config, p_valid=0.99, tokens_per_second=Interval(rate), peak_memory_bytes=Interval(1e9),
        startup_s=0.0, duration_s=Interval(duration_s), cost=Interval(1.0), source=Source.MODEL,
    )  # fmt: skip


def queued(jobs: int, nodes: int, *, busy: bool, seed: int = 1) -> ClusterState:
    """Return a cluster with `jobs` waiting jobs of four options each.

    Nodes that are `busy` are nearly full of running jobs.
    """
    rng = random.Random(seed)
    running: list[JobInfo] = []
    machines = []
    for number in range(nodes):
        model = ("A100", "L40S")[number % 2]
        held = _fill(rng, f"n{number:04}", model, running) if busy else 0
        free = tuple(range(held, NODE_GPUS))
        machines.append(NodeInfo(id=f"n{number:04}", gpu_model=model, total=NODE_GPUS, free=free))
    waiting = [_waiting(rng, number) for number in range(jobs)]
    return ClusterState(jobs=(*waiting, *running), nodes=tuple(machines))


def elastic(jobs: int, gpus: int, seed: int = 1) -> ClusterState:
    """Return waiting jobs with concave speed-ups on three GPU types.

    The largest size of each job is drawn from 1 to 64 GPUs.
    """
    rng = random.Random(seed)
    models = ("A", "B", "C")
    waiting = []
    for number in range(jobs):
        slope, largest = rng.uniform(0.4, 1.0), rng.choice([1, 2, 4, 8, 16, 32, 64])
        sizes = [size for size in (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64) if size <= largest]
        options = tuple(
            option(model, size, 1e4 / (speed * size**slope), speed * size**slope)
            for speed, model in enumerate(models, 1)
            for size in sizes
        )
        waiting.append(JobInfo(id=f"j{number:05}", submitted_at=float(number), options=options))
    nodes = tuple(
        NodeInfo(
            id=f"n{number:04}",
            gpu_model=models[number % 3],
            total=NODE_GPUS,
            free=tuple(range(NODE_GPUS)),
        )
        for number in range(gpus // NODE_GPUS)
    )
    return ClusterState(jobs=tuple(waiting), nodes=nodes)


def _waiting(rng: random.Random, number: int) -> JobInfo:
    gpus, duration_s = rng.choice([1, 1, 1, 2, 4, 8, 16]), rng.lognormvariate(8, 1.5)
    options = tuple(
        option(model, size, duration_s * slower * gpus / size, size / slower)
        for model, slower in (("A100", 1.0), ("L40S", 1.6))
        for size in sorted({gpus, max(1, gpus // 2)}, reverse=True)
    )
    return JobInfo(
        id=f"j{number:05}",
        submitted_at=float(number),
        options=options,
        user=f"u{number % 100}",
        due_at=rng.uniform(0, 1e6) if number % 2 else None,
    )


def _fill(rng: random.Random, node: str, model: str, running: list[JobInfo]) -> int:
    """Put running jobs on a node; returns how many GPUs they hold."""
    held = 0
    while held < NODE_GPUS and rng.random() > 0.03:
        gpus = min(rng.choice([1, 1, 2, 4, 8]), NODE_GPUS - held)
        own = option(model, gpus, rng.lognormvariate(9, 1.5), float(gpus))
        since = -rng.uniform(100, 1e4)
        holding = Holding(
            option=own, gpus=tuple((node, index) for index in range(held, held + gpus)), since=since
        )
        running.append(
            JobInfo(
                id=f"r{len(running):05}",
                submitted_at=since,
                options=(own,),
                holds=holding,
                first_started_at=since,
                attained_gpu_s=-since * gpus,
                user=f"u{len(running) % 100}",
                restart_s=30.0,
            )
        )
        held += gpus
    return held
