"""Fused kernels of hybrids.

State-space and linear-attention layers have them, in packages of their own that need a GPU. Without them
transformers computes the same in plain PyTorch, much slower.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from trainer.architectures import KERNELS
from trainer.train.base.probe import Reach
from trainer.train.settings import TrainingSpec


def without_kernels(model: Any, order: TrainingSpec, reach: Reach | None) -> str:
    """A sentence on kernels that this model would use and lacks here, or nothing."""
    if reach is None:
        return ""
    kinds = {type(module) for name, module in model.named_modules() if name in reach.called}
    missing = sorted({KERNELS.get(name, name) for kind in kinds for name in _fallbacks(kind)})
    if not missing:
        return ""
    what = f"Layers of {order.spec.model} are computed in plain PyTorch, which is much slower than kernels"
    if order.device == "cpu":
        return f"{what} made for GPUs ({', '.join(missing)})."
    return f"{what} that this node lacks: its administrator can install {', '.join(missing)}."


def _fallbacks(kind: type) -> Iterator[str]:
    """Yield the packages whose functions this kind of layer calls in their plain form.

    transformers wraps each such function once, and the wrapper knows its package and what it found.
    """
    methods = (inspect.unwrap(found) for found in vars(kind).values() if callable(found))
    for method in methods:
        if not isinstance(method, FunctionType):
            continue
        for name in method.__code__.co_names:
            known = _known_to(method.__globals__.get(name))
            if known.get("is_new_implementation") is False:
                yield str(known["package"])


def _known_to(wrapper: Any) -> dict[str, Any]:
    if not isinstance(wrapper, FunctionType) or "package" not in wrapper.__code__.co_freevars:
        return {}
    return {
        name: cell.cell_contents
        for name, cell in zip(wrapper.__code__.co_freevars, wrapper.__closure__ or (), strict=True)
        if name in ("package", "is_new_implementation")
    }
