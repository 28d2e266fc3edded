"""Faults of what the portal keeps: checkpoints that are damaged before their use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import psutil

from tests.chaos.cluster import Cluster
from tests.stack.jobs import flip_a_byte

Effect = Callable[[Cluster, str], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def _damaged(cluster: Cluster, node: str, number: int) -> Iterator[None]:
    """Change a byte in the furthest checkpoints of a node's claims, then kill the trainings.

    Found by their folders alone: the database may be stopped, and this thread is the one to wake it.
    """
    stack = cluster.stack
    trainings = stack.trainings(node)
    for training in trainings:
        with contextlib.suppress(psutil.NoSuchProcess):
            training.suspend()
    for claim in {path.name for path in (stack.root / "nodes" / node / "runs").glob("*")}:
        found = (stack.data / "artifacts").glob(f"*/{claim}/checkpoints/step-*/weights.safetensors")
        by_step = sorted(found, key=lambda path: int(path.parent.name.removeprefix("step-")))
        for weights in by_step[-number:]:
            with contextlib.suppress(OSError):  # removed meanwhile, since a later one has come
                flip_a_byte(weights)
    for training in trainings:
        with contextlib.suppress(psutil.NoSuchProcess):
            training.kill()
    yield


newest_damaged: Effect = partial(_damaged, number=1)
all_damaged: Effect = partial(_damaged, number=100)
