"""LoRA adapters (Hu et al., 2021) and base models in 4 bits (QLoRA, 2023).

The source of the second is Dettmers et al. Adapted are, in all architectures, the linear layers
that text passes through: attention, dense MLPs and experts that every token uses; or attention's
alone. The head, routers and the experts they choose from stay as they are, and so do layers whose
adapter could not learn or would not count (`LeftOut`).
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import torch

from trainer.architectures import number_of_experts
from trainer.recipes import ALL_LINEAR, ATTENTION
from trainer.recipes.common import LOOP_CONSTANTS
from trainer.train.base.probe import Reach
from trainer.train.errors import TrainError
from trainer.train.settings import TrainingSpec


def four_bit(dtype: torch.dtype) -> Any:
    """How transformers stores linear layers: NF4 with double quantisation."""
    if importlib.util.find_spec("bitsandbytes") is None:
        raise TrainError(
            "The tuning qlora needs the package bitsandbytes on this node; install it or choose lora."
        )
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def with_adapter(model: Any, order: TrainingSpec, reach: Reach | None) -> Any:
    """Return the model with float32 adapters.

    reach: None where text reaches all of it.
    Raises TrainError.
    """
    from peft import LoraConfig

    settings = order.settings
    adapted_layers = list(targets(model, reach, settings.target_modules))
    if settings.target_modules == ATTENTION and not adapted_layers:
        raise TrainError(
            f"{order.spec.model} has no attention to adapt; choose {ALL_LINEAR} as target_modules."
        )
    config = LoraConfig(
        r=settings.lora_r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=LOOP_CONSTANTS["lora_dropout"].value,
        target_modules=adapted_layers,
        task_type="CAUSAL_LM",
    )
    try:
        adapted = adapt(model, config)
    except ValueError as wrong:  # of architectures that are no transformers, as Mamba
        raise TrainError(
            f"LoRA does not fit {order.spec.model}; choose the tuning full. ({wrong})"
        ) from wrong
    adapted.peft_config["default"].base_model_name_or_path = order.spec.model
    return adapted


def adapt(model: Any, config: Any) -> Any:
    """Return the model with adapters of the layers that a config names.

    It names them in full; no others get one. Raises ValueError.
    """
    from peft import get_peft_model

    named = set(config.target_modules)
    mistaken = _taken_for_experts(model, config)
    with _names_taken_literally(model) if mistaken else contextlib.nullcontext():
        adapted = get_peft_model(model, config)
    if mistaken:  # so that peft, when it reads the adapter, leaves these names alone too
        written = adapted.peft_config["default"]
        written.target_modules = named - mistaken
        written.target_parameters = sorted(f"{name}.weight" for name in mistaken)
    return adapted


def _taken_for_experts(model: Any, config: Any) -> set[str]:
    """Return the layers that peft would swap for all the routed experts.

    In many mixtures (DeepSeek's, GLM's, ...) it takes each `gate_proj`, `up_proj` and `down_proj`, also of
    shared experts and of dense layers, for an expert as earlier versions of transformers had them.
    config: of an adapter, with the layers by their full names.
    """
    from peft.utils.transformers_weight_conversion import convert_peft_config_for_transformers

    swapped = copy.deepcopy(config)
    convert_peft_config_for_transformers(swapped, model, None)
    return set(config.target_modules) - set(swapped.target_modules)


@contextlib.contextmanager
def _names_taken_literally(model: Any) -> Iterator[None]:
    """Keep from peft the kind of model, by which it would rewrite names of layers."""
    kind = model.config.model_type
    model.config.model_type = ""
    try:
        yield
    finally:
        model.config.model_type = kind


def targets(model: Any, reach: Reach | None, placement: str = ALL_LINEAR) -> Iterator[str]:
    """Yield the names of the linear layers that get an adapter.

    reach: None where text reaches all of the model.
    placement: a value of the parameter target_modules.
    """
    return (name for name, why_not in candidates(model, reach, placement) if why_not is None)


class LeftOut(StrEnum):
    """Why a linear layer that text reaches gets no adapter."""

    PASSED_BY = "its weight is read, here or by fused kernels, in a way that passes an adapter by"
    NOT_LINEAR = "it computes something else than a linear layer, so an adapter would not add up with it"
    NO_GRADIENT = "no gradient comes from the loss"


def candidates(
    model: Any, reach: Reach | None, placement: str = ALL_LINEAR
) -> Iterator[tuple[str, LeftOut | None]]:
    """Yield the linear layers that every token passes through.

    Each comes with the reason against an adapter, if there is one.
    """
    from transformers.pytorch_utils import Conv1D

    head, routed = model.get_output_embeddings(), number_of_experts(model.config.to_dict())
    pools = list(expert_pools(model, routed))
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear | Conv1D) or module is head:
            continue
        if placement == ATTENTION and not _of_attention(name):
            continue
        if not _is_routed(name, module, pools, routed) and (reach is None or reach.has(name)):
            yield name, _why_not(model, reach, name, module)


def _why_not(model: Any, reach: Reach | None, name: str, module: Any) -> LeftOut | None:
    parent, _, leaf = name.rpartition(".")
    if leaf in _READ_BY_KERNELS and _is_state_space(model.get_submodule(parent)):
        return LeftOut.PASSED_BY
    if reach is None:
        return None
    if name not in reach.called:
        return LeftOut.PASSED_BY
    if name not in reach.modules:
        return LeftOut.NO_GRADIENT
    if isinstance(module, torch.nn.Linear) and name not in reach.linear:
        return LeftOut.NOT_LINEAR
    return None


# Of Mamba's mixers, as fused kernels take them: where there are such kernels, the layers are not called.
_READ_BY_KERNELS = ("out_proj", "x_proj", "dt_proj")


def _is_state_space(mixer: Any) -> bool:
    """Tell Mamba's mixers: a convolution, a decay, and what passes the state by."""
    return hasattr(mixer, "conv1d") and hasattr(mixer, "A_log") and hasattr(mixer, "D")


def _of_attention(name: str) -> bool:
    """Tell it by the modules around, as `self_attn`, or `attention` in GPT-NeoX."""
    return any(part.endswith(("attn", "attention")) for part in name.split(".")[:-1])


def expert_pools(model: Any, routed: int) -> Iterator[str]:
    """Yield the names of the modules that hold the experts of a layer.

    They mostly are one weight of three dimensions.
    routed: how many there are, 0 for a model without.
    """
    for name, module in model.named_modules() if routed else ():
        shapes = (weight.shape for weight in module.parameters(recurse=False))
        if name.endswith(".experts") or any(len(shape) == 3 and shape[0] == routed for shape in shapes):
            yield name


def _is_routed(name: str, module: Any, pools: list[str], routed: int) -> bool:
    """Tell whether this is an expert, or weighs the experts beside it.

    Such a module gives a score for each, or one for a shared one.
    """
    scores = getattr(module, "out_features", None) in (1, routed)
    beside = (pool.rpartition(".")[0] for pool in pools)
    return any(name.startswith(f"{pool}.") for pool in pools) or (
        scores and any(name.startswith(f"{block}.") for block in beside)
    )
