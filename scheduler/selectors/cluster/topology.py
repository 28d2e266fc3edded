"""A node as a picture: its sockets, NUMA nodes, switches, GPUs and jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from scheduler.core.placement.levels import TopologyLevel, closest
from scheduler.core.types import GpuSite
from scheduler.models import Allocation, Gpu, Job, Node
from scheduler.selectors.cluster.sites import known

COUNTS = (1, 2, 4, 8)


class PlacedGpu(NamedTuple):
    """A GPU, where it sits, and the job that holds it."""

    gpu: Gpu
    site: GpuSite
    job: Job | None


class FreeTogether(NamedTuple):
    """How close so many free GPUs of a node can lie; None: fewer are free."""

    gpus: int
    level: TopologyLevel | None


class NodePicture(NamedTuple):
    """GPUs in the order of their sites."""

    gpus: Sequence[PlacedGpu]
    free: Sequence[FreeTogether]

    @property
    def sockets(self) -> list[list[list[list[PlacedGpu]]]]:
        """GPUs by socket, in it by NUMA node, and there by switch."""
        return [
            [list(_parts(of_numa, lambda gpu: gpu.site.switch)) for of_numa in _parts(of_socket, _numa)]
            for of_socket in _parts(self.gpus, lambda gpu: gpu.site.socket)
        ]


def picture_of(node: Node) -> NodePicture | None:
    """The picture of a node's GPUs; None where their sites are unknown."""
    gpus = list(node.gpus.order_by("index"))
    sites = known([gpu.placed for gpu in gpus])
    if not sites:
        return None
    held = {
        allocation.gpu_id: allocation.claim.attempt.job
        for allocation in Allocation.objects.filter(gpu__in=gpus, released_at__isnull=True).select_related(
            "claim__attempt__job"
        )
    }
    placed = [PlacedGpu(gpu, site, held.get(gpu.pk)) for gpu, site in zip(gpus, sites, strict=True)]
    free = [gpu.gpu.index for gpu in placed if gpu.job is None]
    counts = [count for count in COUNTS if count <= len(gpus)]
    together = [
        FreeTogether(count, closest(sites, free, count)[0] if len(free) >= count else None)
        for count in counts
    ]
    return NodePicture(sorted(placed, key=lambda gpu: (gpu.site[:3], gpu.gpu.index)), together)


def _numa(gpu: PlacedGpu) -> int:
    return gpu.site.numa


def _parts(gpus: Sequence[PlacedGpu], name: Callable[[PlacedGpu], int]) -> Iterator[list[PlacedGpu]]:
    return (list(part) for _, part in groupby(gpus, key=name))
