"""How fast the links of a node are, by how close two GPUs lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scheduler.core.placement.levels import TopologyLevel, closest
from scheduler.core.types import GpuSite
from trainer.self_tests import LinkTest


class LinkSpeed(NamedTuple):
    """The slowest pair of GPUs that was measured at a level.

    level: the word of a `TopologyLevel`. The others are as in `LinkTest`.
    """

    gpu_model: str
    level: str
    bytes_per_s: float
    latency_s: float


def speeds_by_level(
    tests: Iterable[LinkTest], models: Sequence[str], sites: Sequence[GpuSite]
) -> list[LinkSpeed]:
    """Return a speed for each GPU model and measured level, the closest first.

    models, sites: of the node's GPUs, by index. Without sites nobody knows how close a pair lies: none.
    """
    found: dict[tuple[str, TopologyLevel], LinkTest] = {}
    for test in tests if sites else ():
        key = models[test.first], closest(sites, (test.first, test.second), 2)[0]
        if key not in found or test.bytes_per_s < found[key].bytes_per_s:
            found[key] = test
    return [
        LinkSpeed(model, level.word, found[model, level].bytes_per_s, found[model, level].latency_s)
        for model, level in sorted(found, key=lambda key: (key[0], -key[1]))
    ]
