"""Models of a real architecture with random weights.

They are for runs that measure speed and memory alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from trainer.builtin import byte_tokenizer
from trainer.protocol import RANDOM_MODEL
from trainer.train.distributed.sharding import skeleton
from trainer.train.errors import TrainError
from trainer.train.memory import free_bytes
from trainer.train.settings import TrainingSpec

_MOST_OF_THE_GPU = 0.8


def is_random(order: TrainingSpec) -> bool:
    """Is the model asked for made here rather than loaded?"""
    return order.spec.model.startswith(RANDOM_MODEL)


def prepare(order: TrainingSpec) -> Path:
    """Make a folder of the run with the model's config.json and a byte tokenizer.

    Raises TrainError.
    """
    if not order.spec.shape:
        raise TrainError(
            f"The portal knows no sizes of {order.spec.model}: give {RANDOM_MODEL}NAME with a model of the"
            " catalogue whose architecture can be built from its sizes."
        )
    folder = order.run_dir / "base"
    byte_tokenizer(order.spec.shape.get("max_position_embeddings", 2048)).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(order.spec.shape), encoding="utf-8")
    return folder


def build(source: str, order: TrainingSpec, device: torch.device, dtype: torch.dtype) -> Any:
    """Build the model with the sizes of `source`/config.json.

    The weights are the same in every process.
    """
    from transformers import AutoModelForCausalLM

    torch.manual_seed(order.settings.seed)
    with device:
        return AutoModelForCausalLM.from_config(_config(source), dtype=dtype)


def store(source: str, order: TrainingSpec, device: torch.device, dtype: torch.dtype) -> None:
    """Write the weights into `source`.

    Unquantised they may be too large for the GPU: then the host makes them, which takes longer.
    """
    size = sum(weight.numel() for weight in skeleton(_config(source), dtype).parameters()) * dtype.itemsize
    fits = size < _MOST_OF_THE_GPU * free_bytes(device)
    build(source, order, device if fits else torch.device("cpu"), dtype).save_pretrained(source)


def deviation(config: Any) -> float:
    """Standard deviation of the weights."""
    return float(getattr(config.get_text_config(), "initializer_range", 0.02))


def _config(source: str) -> Any:
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(source, local_files_only=True, trust_remote_code=False)
