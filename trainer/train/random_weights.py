"""Models of a real architecture with random weights, for runs that measure speed and memory alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from trainer.builtin import byte_tokenizer
from trainer.protocol import RANDOM_MODEL
from trainer.train.errors import TrainError
from trainer.train.settings import Order
from trainer.train.world import World


def is_random(order: Order) -> bool:
    """Is the model asked for made here rather than loaded?"""
    return order.spec.model.startswith(RANDOM_MODEL)


def prepare(order: Order) -> Path:
    """A folder of the run with the model's config.json and a tokenizer of bytes. Raises TrainError."""
    if not order.spec.shape:
        raise TrainError(
            f"The portal knows no sizes of {order.spec.model}: give {RANDOM_MODEL}NAME with a model of the"
            " catalogue whose architecture can be built from its sizes."
        )
    folder = order.run_dir / "base"
    byte_tokenizer(order.spec.shape.get("max_position_embeddings", 2048)).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(order.spec.shape), encoding="utf-8")
    return folder


def build(source: str, order: Order, world: World, dtype: torch.dtype) -> Any:
    """The model with the sizes of `source`/config.json, the same weights in every process."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    sharded = order.settings.sharding == "fsdp" and world.size > 1  # moves one block at a time to the GPU
    torch.manual_seed(order.settings.seed)
    with torch.device("cpu" if sharded else world.device):
        return AutoModelForCausalLM.from_config(config, dtype=dtype)
