"""Where a gang fits: all of its GPUs at once, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from knowledge.core.types import Option
from scheduler.core.types import GpuId, Node


def could_hold(option: Option, nodes: Iterable[Node], only_node: str | None = None) -> bool:
    """Would the option fit if every ready node were empty?"""
    return _enough(option, [node.total for node in _suitable(option, nodes, only_node)])


def place(option: Option, nodes: Iterable[Node], only_node: str | None = None) -> tuple[GpuId, ...] | None:
    """GPUs for the whole gang by best fit, or None.

    Best fit takes the nodes that the gang leaves fullest, so that large holes stay for large gangs;
    ties go to the smaller id. Indices are taken from the lowest.
    """
    per_node = option.gpus // option.nodes
    fitting = [node for node in _suitable(option, nodes, only_node) if len(node.free) >= per_node]
    if len(fitting) < option.nodes:
        return None
    fullest = sorted(fitting, key=lambda node: (len(node.free), node.id))[: option.nodes]
    return tuple((node.id, index) for node in fullest for index in sorted(node.free)[:per_node])


def _suitable(option: Option, nodes: Iterable[Node], only_node: str | None) -> list[Node]:
    return [
        node
        for node in nodes
        if node.ready and node.gpu_model == option.gpu_model and only_node in (None, node.id)
    ]


def _enough(option: Option, sizes: list[int]) -> bool:
    return sum(size >= option.gpus // option.nodes for size in sizes) >= option.nodes
