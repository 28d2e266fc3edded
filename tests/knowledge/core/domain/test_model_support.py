"""Pools with the nodes alone that can load a model."""

from __future__ import annotations

from dataclasses import replace

from knowledge.core.domain.model_support import explain_unloadable, loading
from knowledge.core.domain.offline_node import OfflineNode
from knowledge.core.domain.types import GpuPool, Unsupported

MODEL = "org/model"
HOLDS = OfflineNode(name="holds", gpus=8, held_models=(MODEL,))
LACKS = OfflineNode(name="lacks", gpus=4, held_models=())
SHORT = OfflineNode(name="short", gpus=2, held_models=(), cannot_train=("qlora",))
POOL = GpuPool(
    gpu_model="L4", node_sizes=(1, 2, 4, 8), memory_bytes=1, offline=(HOLDS, LACKS, SHORT),
    cannot_train={"qlora": Unsupported(why="short: no", others=(1, 4, 8))},
)  # fmt: skip


def test_nodes_that_are_offline_and_lack_the_model_are_left_out() -> None:
    (left,) = loading([POOL], MODEL)
    assert (left.node_sizes, left.offline) == ((1, 8), (HOLDS,))
    assert left.cannot_train["qlora"].others == (1, 8)


def test_models_that_need_no_hub_are_everywhere() -> None:
    for model in ("builtin/tiny", "random/llama", "/srv/models/mine"):
        assert loading([POOL], model) == (POOL,)


def test_only_where_no_node_can_it_is_explained() -> None:
    assert explain_unloadable([POOL], MODEL) == explain_unloadable([], MODEL) == ""
    offline = replace(POOL, node_sizes=(2, 4), offline=(LACKS, SHORT))
    assert loading([offline], MODEL) == ()
    assert "lacks, short do not hold it and may not download it" in explain_unloadable([offline], MODEL)
