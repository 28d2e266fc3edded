"""Memory of a GPU, and how often a checkpoint may be written, as far as they can be told without a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainer.protocol import Resources, Spec

pytestmark = pytest.mark.torch
GIB = 2**30
SPEC = Spec(
    job="j",
    attempt="a",
    claim="c",
    fence=1,
    recipe="sft",
    entry="",
    model="builtin/tiny-llama",
    params={},
    gpus=(0,),
    resources=Resources(gpus_per_node=1, cores=1, memory_bytes=GIB, grace_s=5.0),
)


def test_the_peak_of_a_gpu_counts_what_lies_beside_the_allocator(monkeypatch: pytest.MonkeyPatch):
    import torch

    from trainer.train.memory import peak_bytes

    cuda = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (50 * GIB, 80 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 28 * GIB)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 40 * GIB)
    assert peak_bytes(cuda) == 42 * GIB
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 79 * GIB)
    assert peak_bytes(cuda) == 80 * GIB


@pytest.mark.parametrize(
    ("every_s", "took_s", "pause_s"), [(60.0, 0.1, 60.0), (60.0, 200.0, 2000.0), (0.0, 200.0, 0.0)]
)
def test_large_checkpoints_take_a_tenth_of_the_time_at_most(every_s: float, took_s: float, pause_s: float):
    from trainer.train.loop import pause_between_checkpoints_s

    assert pause_between_checkpoints_s(replace(SPEC, checkpoint_every_s=every_s), took_s) == pause_s
