"""Checks that a base model can be trained on text as asked for.

An unsuitable model is refused before the first step.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from trainer.architectures import number_of_experts, positions, why_not_four_bits, why_too_long
from trainer.train.base.adapters import targets
from trainer.train.base.probe import Reach
from trainer.train.base.scope import size
from trainer.train.errors import TrainError
from trainer.train.settings import TrainingSpec

_NAMED = 3


def check_kind(order: TrainingSpec, config: Any) -> None:
    """Check the kind of model by its own description. Raises TrainError."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING or getattr(config, "is_encoder_decoder", False):
        kind = (getattr(config, "architectures", None) or [config.model_type])[0]
        raise TrainError(
            f"{order.spec.model} is a {kind}; only models that continue text (causal language models) can be"
            " trained. Choose such a model."
        )
    experts = number_of_experts(config.to_dict())
    why = why_not_four_bits(order.spec.model, config.model_type, experts)
    if order.settings.tuning == "qlora" and why:
        raise TrainError(why)


def check_sizes(order: TrainingSpec, model: Any, tokenizer: Any) -> None:
    """Do rows and tokenizer go with the model? Raises TrainError."""
    most = positions(model.config.get_text_config().to_dict())
    if why := why_too_long(order.spec.model, most, order.settings.tokens_per_sample):
        raise TrainError(why)
    rows = model.get_input_embeddings().weight.shape[0]
    # padding is not looked up (see trainer.train.data.batches.padding)
    beyond = {text: id for text, id in tokenizer.get_vocab().items() if id >= rows}
    named = sorted(beyond.keys() - {tokenizer.pad_token}, key=beyond.__getitem__)
    if named:
        more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
        raise TrainError(
            f"The tokenizer of {order.spec.model} has more tokens than the model, which has no embedding for"
            f" {', '.join(named[:_NAMED])}{more}. Resize the model's embeddings with resize_token_embeddings,"
            " or take the tokenizer that it was published with."
        )


def check_complete(order: TrainingSpec, model: Any, missing: Collection[str]) -> None:
    """Raises TrainError naming weights that the files lack.

    missing: what transformers made up, tied weights left out; buffers among it start as those of a new model.
    """
    names = sorted(set(missing) & {name for name, _ in model.named_parameters(remove_duplicate=False)})
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise TrainError(
            f"The files of {order.spec.model} lack weights of the model: {', '.join(names[:_NAMED])}{more}. "
            "They would be random numbers; choose a complete model, with its language-modelling head."
        )


def check_stored(order: TrainingSpec, model: Any, reach: Reach | None) -> None:
    """Raise TrainError where the stored weights do not suit the tuning.

    That is where weights that are to learn are quantised already, or where layers that are to
    be in 4 bits are not.
    """
    whole = order.settings.tuning == "full" or order.settings.sharding == "fsdp"
    if whole and not all(map(torch.is_floating_point, model.parameters())):
        raise TrainError(
            f"The files of {order.spec.model} hold quantised weights: full fine-tuning cannot train them"
            " nor fsdp cut them. Choose the tuning lora without fsdp, or the model unquantised."
        )
    if order.settings.tuning != "qlora":
        return
    weights = [model.get_submodule(name).weight for name in targets(model, reach)]
    left = sum(weight.numel() for weight in weights if not hasattr(weight, "quant_state"))
    if left > sum(map(size, weights)) / 2:
        raise TrainError(
            f"The layers of {order.spec.model} cannot be stored in 4 bits; choose the tuning lora."
        )


def check_checkpointing(order: TrainingSpec, model: Any) -> None:
    """Raises TrainError for a model that cannot compute its activations again."""
    if not model.supports_gradient_checkpointing:
        raise TrainError(
            f"{order.spec.model} ({model.config.model_type}) has no gradient checkpointing: choose"
            " gradient_checkpointing false."
        )


def check_direction(order: TrainingSpec, looks_ahead: bool) -> None:
    """Raises TrainError for a model whose tokens see those that they are to predict."""
    if looks_ahead:
        raise TrainError(
            f"In {order.spec.model} a token sees those after it, so that nothing is left to predict. It is no"
            " causal language model; choose one."
        )


def check_precision(order: TrainingSpec) -> None:
    """Raises TrainError where the GPU would only emulate bfloat16."""
    in_bfloat16 = order.device == "cuda" and order.settings.precision == "bfloat16"
    if in_bfloat16 and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise TrainError("This GPU has no bfloat16; choose the precision float16.")
