"""Which attention a training gets: never one that holds all scores for want of a kernel that shares keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.runs import Run

pytestmark = pytest.mark.torch


@pytest.fixture
def asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Chooses for a training: does transformers leave keys shared?"""
    import torch
    from transformers.integrations import sdpa_attention

    from trainer.train.base.attention import choose_kernel
    from trainer.train.settings import read_order

    monkeypatch.setattr(sdpa_attention, "use_gqa_in_sdpa", sdpa_attention.use_gqa_in_sdpa)  # as it was, after
    key = torch.empty(1, 2, 8, 16)

    def asked(device: str, precision: str, capability: tuple[int, int] = (9, 0)) -> bool:
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
        run.device, run.params["precision"] = device, precision
        choose_kernel(read_order(run.write().path))
        return bool(sdpa_attention.use_gqa_in_sdpa(None, key, key))

    return asked


def test_keys_are_copied_where_no_kernel_shares_them(asks: Any):
    assert not asks("cuda", "float32")
    assert not asks("cuda", "float16", (7, 5))
    assert asks("cuda", "bfloat16", (8, 0))
    assert asks("cuda", "float16", (9, 0))
    assert asks("cpu", "float32")


def test_copied_keys_give_the_same_attention(asks: Any):
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    torch.manual_seed(0)
    query, key, value = (torch.randn(2, heads, 16, 8) for heads in (4, 2, 2))
    layer = torch.nn.Module()
    layer.num_key_value_groups, layer.is_causal = 2, True
    found = []
    for precision in ("bfloat16", "float32"):
        asks("cuda", precision)
        found.append(sdpa_attention_forward(layer, query, key, value, None)[0])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    ("lengths", "max_steps", "wanted"),
    [([64] * 8, 1, True), ([*range(8, 72)], 40, False), ([16, 64], 40, False), ([16, 64], 200, True)],
)
def test_sizes_that_are_met_often_are_worth_a_plan(
    run: Run, lengths: list[int], max_steps: int, wanted: bool, monkeypatch: pytest.MonkeyPatch
):
    import torch

    from trainer.train.base.attention import choose_plans
    from trainer.train.plan import StepPlan
    from trainer.train.settings import read_order

    chosen: list[bool] = []
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", chosen.append)
    plan = StepPlan(lengths=lengths, seed=1, batch=1, micro=1, epochs=1.0, max_steps=max_steps)
    choose_plans(read_order(run.write().path), plan)
    assert not chosen  # a CPU has no such kernel
    run.device = "cuda"
    choose_plans(read_order(run.write().path), plan)
    assert chosen == [wanted]
