"""Attention whose keys heads share, where no fused kernel takes it so.

On GPUs PyTorch's fused kernels share keys in 16 bits, from Ampere on. Else it falls back, without a word, to
one that holds all scores of a layer at once: 8 GiB for 32 heads and 8,192 tokens in float32. With keys and
values copied for all heads, a fused kernel is found.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

from trainer.train.settings import TrainingSpec

AMPERE = (8, 0)  # compute capability


def choose_kernel(order: TrainingSpec) -> None:
    """Have transformers copy keys and values for all heads where that is needed.

    To be called before the model runs. Another training of the same process chooses anew.
    """
    from transformers.integrations import sdpa_attention

    asked = sdpa_attention.use_gqa_in_sdpa
    asked = getattr(asked, "__wrapped__", asked)
    sdpa_attention.use_gqa_in_sdpa = asked if _shares_keys(order) else _never(asked)


def _shares_keys(order: TrainingSpec) -> bool:
    if order.device != "cuda":
        return True
    return order.settings.precision != "float32" and torch.cuda.get_device_capability() >= AMPERE


def _never(asked: Any) -> Any:
    @wraps(asked)
    def answer(*_args: Any, **_kwargs: Any) -> bool:
        return False

    return answer
