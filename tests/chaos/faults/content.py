"""Faults of what the portal keeps: checkpoints that are damaged before their use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import psutil
from django.db import Error, connections

from scheduler.models import Checkpoint
from tests.chaos.cluster import Cluster
from tests.stack.jobs import flip_a_byte, weights_at_the_portal

Effect = Callable[[Cluster, str], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def _damaged(cluster: Cluster, node: str, number: int) -> Iterator[None]:
    """Change a byte in the furthest checkpoints of a node's jobs, then kill the trainings.

    Without effect where the portal holds none, or its database is away.
    """
    stack = cluster.stack
    trainings = stack.trainings(node)
    for training in trainings:
        with contextlib.suppress(psutil.NoSuchProcess):
            training.suspend()
    connections[stack.alias].close()  # a restart of the database may have cut it
    with contextlib.suppress(Error):
        held = Checkpoint.objects.using(stack.alias).filter(node__isnull=True, fault="").order_by("-step")
        here = {"attempt__ended_at__isnull": True, "claim__node__name": node}
        for job in set(held.filter(**here).values_list("job_id", flat=True)):
            for checkpoint in held.filter(job=job)[:number]:
                with contextlib.suppress(OSError):  # removed meanwhile, since a later one has come
                    flip_a_byte(weights_at_the_portal(stack, checkpoint))
    for training in trainings:
        with contextlib.suppress(psutil.NoSuchProcess):
            training.kill()
    yield


newest_damaged: Effect = partial(_damaged, number=1)
all_damaged: Effect = partial(_damaged, number=100)
