"""A GPU that is not there: tensors without values, CUDA's rules of autocast, and every storage's life.

PyTorch's `FakeTensorMode` runs a model's operations by their sizes alone, so that one of billions of weights
takes seconds and no memory. Where CUDA computes otherwise than a CPU, so do these: autocast computes in
float32 what `aten/src/ATen/autocast_mode.h` lists for CUDA, dropout keeps a mask of bytes, and attention is
the kernel that `sdp_utils.cpp` chooses on that GPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.trainer.caching_allocator import Event

aten = torch.ops.aten
AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
# Of CUDA's list, operations that decoders use and that a CPU's autocast leaves as they are.
IN_FLOAT32 = (
    *(
        "layer_norm",
        "native_layer_norm",
        "group_norm",
        "rsqrt",
        "reciprocal",
        "exp",
        "log",
        "log2",
        "softplus",
    ),
    *(
        "pow.Tensor_Scalar",
        "pow.Tensor_Tensor",
        "pow.Scalar",
        "nll_loss",
        "nll_loss_nd",
        "cumprod",
        "norm.Scalar",
    ),
)
OR_AS_ASKED = ("softmax.int", "log_softmax.int", "sum", "sum.dim_IntList", "cumsum", "prod")
FLASH, EFFICIENT, MATH = "flash", "efficient", "math"


class Recorder(TorchDispatchMode):
    """Births and deaths of storages, in their order; those from before are none of them."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.alive: dict[int, int] = {}
        self.watched: dict[int, weakref.ref[Any]] = {}
        self.held = self.highest = 0

    def watch(self, tensor: torch.Tensor) -> None:
        """Note the birth of a tensor's storage, and its death when it comes."""
        storage = tensor.untyped_storage()
        key = int(storage._cdata)
        if key in self.watched:
            return
        size = storage.nbytes()
        self.watched[key] = weakref.ref(storage, lambda _, key=key: self._died(key))  # type: ignore[misc]
        self.alive[key] = size
        self.events.append(Event(key, max(size, 1)))
        self.held += size
        self.highest = max(self.highest, self.held)

    def _died(self, key: int) -> None:
        del self.watched[key]
        size = self.alive.pop(key)
        self.events.append(Event(key, -max(size, 1)))
        self.held -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for one in tree_leaves(found):
            if isinstance(one, torch.Tensor):
                self.watch(one)
        return found


def _widened(value: Any) -> Any:
    wide = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64
    return value.float() if wide else value


def _in_float32(operation: Any, *, or_as_asked: bool) -> Callable[..., Any]:
    def compute(*given: Any, **named: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(AUTOCAST):
            if or_as_asked and any(isinstance(one, torch.dtype) for one in (*given, *named.values())):
                return operation(*given, **named)
            return operation(
                *map(_widened, given), **{name: _widened(value) for name, value in named.items()}
            )

    return compute


@contextmanager
def cuda_autocast() -> Iterator[None]:
    """Let a CPU's autocast compute in float32 what CUDA's does."""
    library = torch.library.Library("aten", "IMPL")
    for name in (*IN_FLOAT32, *OR_AS_ASKED):
        operation = getattr(aten, name.split(".")[0])
        operation = getattr(operation, name.split(".")[1] if "." in name else "default")
        library.impl(
            name, _in_float32(operation, or_as_asked=name in OR_AS_ASKED), "AutocastCPU", allow_override=True
        )
    try:
        yield
    finally:
        library._destroy()


def dropped(
    given: torch.Tensor, p: float = 0.5, training: bool = True, _inplace: bool = False
) -> torch.Tensor:
    """Dropout as CUDA's kernel does it, with a mask of bytes."""
    if not training or p == 0.0:
        return given
    found: torch.Tensor = torch.native_dropout(given, p, True)[0]
    return found


class Attention:
    """Attention by the kernel that PyTorch chooses: flash, the efficient one, or plain products.

    flash: on a GPU that has it. The efficient one takes masks, but no keys that heads share.
    """

    def __init__(self, flash: bool) -> None:
        self.flash = flash

    def _kernel(self, query: torch.Tensor, key: torch.Tensor, mask: Any) -> str:
        grouped = query.shape[1] != key.shape[1]
        half = query.dtype in (torch.float16, torch.bfloat16)
        if self.flash and mask is None and half and query.shape[-1] <= 256:
            return FLASH
        return MATH if grouped else EFFICIENT

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if torch.is_autocast_enabled("cpu"):
            width = torch.get_autocast_dtype("cpu")
            query, key, value = query.to(width), key.to(width), value.to(width)
        kernel = self._kernel(query, key, attn_mask)
        with torch._C._ExcludeDispatchKeyGuard(AUTOCAST):
            if kernel == FLASH:
                return aten._scaled_dot_product_flash_attention(
                    query, key, value, dropout_p, is_causal, scale=scale
                )[0]
            if kernel == EFFICIENT:
                mask = _as_numbers(attn_mask, query, key)
                return aten._scaled_dot_product_efficient_attention(
                    query, key, value, mask, True, dropout_p, is_causal, scale=scale
                )[0]
            return _by_products(query, key, value, attn_mask, is_causal, scale)


def _as_numbers(mask: torch.Tensor | None, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor | None:
    """The mask of numbers that the efficient kernel takes, of a mask of booleans."""
    if mask is None:
        return None
    if mask.dtype == torch.bool:
        numbers = torch.zeros_like(mask, dtype=query.dtype)
        mask = numbers.masked_fill_(mask.logical_not(), float("-inf"))
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def _by_products(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    is_causal: bool,
    scale: float | None,
) -> torch.Tensor:
    """Attention as `_scaled_dot_product_attention_math` makes it: of 16 bits in float32."""
    width, heads = query.dtype, query.shape[1]
    query, key, value = query.float(), key.float(), value.float()
    if key.shape[1] != heads:
        key = key.repeat_interleave(heads // key.shape[1], 1)
        value = value.repeat_interleave(heads // value.shape[1], 1)
    factor = (scale or query.shape[-1] ** -0.5) ** 0.5
    query = query * factor
    if is_causal:
        mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril()
    scores = query @ (key * factor).transpose(-2, -1)
    if mask is not None:
        scores = scores.add_(_as_numbers(mask, query, key))
    shares = aten._safe_softmax(scores, -1)
    found, _ = (shares @ value).to(width), shares.to(width)  # it gives the shares as well
    return found


def _applied(
    module: torch.nn.Module, convert: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
) -> Any:
    """Convert a module's weights one by one, as tensors without values cannot be swapped."""
    for child in module.children() if recurse else ():
        _applied(child, convert)
    for name, weight in module._parameters.items():
        if weight is not None:
            with torch.no_grad():
                converted = convert(weight)
            if converted is not weight:
                module._parameters[name] = torch.nn.Parameter(converted, weight.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = convert(buffer)
    return module


@contextmanager
def fake_gpu(attention: Attention) -> Iterator[None]:
    """Run what is within as on a GPU, without values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    drop, attend, apply = functional.dropout, functional.scaled_dot_product_attention, torch.nn.Module._apply
    functional.dropout, functional.scaled_dot_product_attention = dropped, attention
    torch.nn.Module._apply = _applied  # type: ignore[assignment]
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), cuda_autocast():
            yield
    finally:
        functional.dropout, functional.scaled_dot_product_attention = drop, attend
        torch.nn.Module._apply = apply  # type: ignore[method-assign]
