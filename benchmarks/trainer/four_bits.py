"""A stand-in for bitsandbytes' 4-bit layers, of its sizes and with what its autograd function saves.

peft's own adapters for such layers work on it (`peft/tuners/lora/bnb.py`). As in `bitsandbytes/autograd/
_functions.py` and `nn/modules.py`: two weights a byte, a scale of one byte for 64 of them and of four for 256
scales; the weight is made whole for each product, in either direction; from 0.43.2 on the input is not kept;
and what comes out is as wide as what went in.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from typing import Any

import torch

BLOCK, NESTED = 64, 256  # weights of a scale, and scales of a scale


class MatMul4Bit(torch.autograd.Function):
    """The product with a weight made whole, of which nothing is kept."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor, bias: Any, shape: Any, stored: Any) -> torch.Tensor:
        ctx.whole = (shape, stored)
        whole = torch.empty(shape, dtype=stored, device=given.device).to(given.dtype)
        return torch.nn.functional.linear(given, whole, bias)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        shape, stored = ctx.whole
        whole = torch.empty(shape, dtype=stored, device=gradient.device).to(gradient.dtype)
        return torch.matmul(gradient, whole), None, None, None


class Linear4bit(torch.nn.Linear):
    """A linear layer in 4 bits, scales included."""

    def __init__(self, like: torch.nn.Linear, compute: torch.dtype) -> None:
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = like.in_features, like.out_features
        self.compute_dtype, self.stored = compute, like.weight.dtype
        number, device = like.weight.numel(), like.weight.device
        packed = torch.empty((number + 1) // 2, 1, dtype=torch.uint8, device=device)
        self.weight = torch.nn.Parameter(packed, requires_grad=False)
        self.weight.compress_statistics, self.weight.quant_type = True, "nf4"  # type: ignore[attr-defined]
        self.bias = like.bias
        scales = -(-number // BLOCK)
        self.scales = torch.empty(scales, dtype=torch.uint8, device=device)
        self.scales_of_scales = torch.empty(-(-scales // NESTED), device=device)
        self.quant_state = None

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        if self.bias is not None and self.bias.dtype != given.dtype:
            self.bias.data = self.bias.data.to(given.dtype)
        bias = None if self.bias is None else self.bias.to(self.compute_dtype)
        shape = (self.out_features, self.in_features)
        narrow = given.to(self.compute_dtype)
        found: torch.Tensor = MatMul4Bit.apply(narrow, bias, shape, self.stored)
        return found.to(given.dtype)


def install() -> None:
    """Let peft find these layers under bitsandbytes' name."""
    module, layers = types.ModuleType("bitsandbytes"), types.ModuleType("bitsandbytes.nn")
    layers.Linear4bit, layers.Params4bit = Linear4bit, torch.nn.Parameter  # type: ignore[attr-defined]
    layers.Linear8bitLt = type("Linear8bitLt", (torch.nn.Linear,), {})  # type: ignore[attr-defined]
    module.nn, module.__version__ = layers, "0.45.0"  # type: ignore[attr-defined]
    module.__spec__ = importlib.machinery.ModuleSpec("bitsandbytes", None)
    sys.modules["bitsandbytes"], sys.modules["bitsandbytes.nn"] = module, layers


def quantise(model: torch.nn.Module, compute: torch.dtype, left_out: str = "lm_head") -> None:
    """Put every linear layer but the head into 4 bits, as transformers does it."""
    from transformers.pytorch_utils import Conv1D

    for name, module in list(model.named_modules()):
        linear = isinstance(module, torch.nn.Linear | Conv1D)
        if not linear or name.endswith((left_out, "embed_out")):
            continue
        if isinstance(module, Conv1D):
            like = torch.nn.Linear(*module.weight.shape, dtype=module.weight.dtype)
            like.bias = module.bias
            module = like
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, Linear4bit(module, compute))
    model.is_loaded_in_4bit = True  # type: ignore[assignment]
