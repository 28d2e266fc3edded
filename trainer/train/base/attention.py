"""Which of PyTorch's fused kernels computes attention.

On GPUs they take keys that heads share in 16 bits alone, from Ampere on. Else PyTorch falls back, without a
word, to a kernel that holds all scores of a layer at once: 8 GiB for 32 heads and 8,192 tokens in float32.
With keys and values copied for all heads, a fused kernel is found.

cuDNN's kernel, which PyTorch prefers on Hopper and Blackwell, takes a third less time than the others, but
makes a plan for each size that it meets, which takes 0.14 s on an H100
(docs/measurements/README.md). Samples of many lengths have a new size in nearly every
micro-batch.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

from trainer.train.plan import StepPlan
from trainer.train.settings import TrainingSpec

AMPERE = (8, 0)  # compute capability
PLAN_PAYS = 50  # micro-batches of a size after which what a faster kernel saves is worth its plan


def choose_kernel(order: TrainingSpec) -> None:
    """Have transformers copy keys and values for all heads where that is needed.

    To be called before the model runs. Another training of the same process chooses anew.
    """
    from transformers.integrations import sdpa_attention

    original = sdpa_attention.use_gqa_in_sdpa
    original = getattr(original, "__wrapped__", original)
    sdpa_attention.use_gqa_in_sdpa = original if _shares_keys(order) else _never(original)


def choose_plans(order: TrainingSpec, plan: StepPlan) -> None:
    """Leave cuDNN's attention out where micro-batches are of too many sizes.

    To be called before the first step. Another training of the same process chooses anew.
    """
    if order.device == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(plan.sizes == 1 or plan.parts >= PLAN_PAYS * plan.sizes)


def _shares_keys(order: TrainingSpec) -> bool:
    if order.device != "cuda":
        return True
    return order.settings.precision != "float32" and torch.cuda.get_device_capability() >= AMPERE


def _never(asked: Any) -> Any:
    @wraps(asked)
    def answer(*_args: Any, **_kwargs: Any) -> bool:
        return False

    return answer
