"""Bytes a token that a GPU's allocator would keep, beside what the terms say.

    .venv-train/bin/python -m benchmarks.trainer.reserved [--layers 2]

Models of real sizes but few layers, their weights frozen and in bfloat16, on the CPU: one forward and
backward pass with checkpointing and the model's own loss. Its allocations are played through the rules of
CUDA's allocator (`benchmarks/trainer/caching_allocator.py`), at two sizes that a GPU would have; all that
grows with the tokens counts, but for the inputs of checkpointed layers, which both sides know.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.trainer.caching_allocator import events_of, reserved
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic import activations, cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.hf_config import model_from_config
from knowledge.core.domain.types import Config

TOKENS, SCALE = 48, 320  # tokens that the CPU computes, and how many times as many a GPU would


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a real model's layers and vocabulary."""

    name: str
    architecture: str
    hidden: int
    width: int
    key_heads: int
    vocabulary: int


SHAPES = (
    Shape("Llama 2 7B", "llama", 4096, 11008, 32, 32_000),
    Shape("Mistral 7B", "mistral", 4096, 14336, 8, 32_000),
    Shape("Granite 3.1 2B", "granite", 2048, 8192, 8, 49_155),
    Shape("Granite 3.1 8B", "granite", 4096, 12800, 8, 49_155),
    Shape("Llama 3.2 1B", "llama", 2048, 8192, 8, 128_256),
)


def held(config: AutoConfig) -> float:
    """Bytes a token that the allocator keeps."""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    for weight in model.parameters():
        weight.requires_grad = False
    model.enable_input_require_grads()
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    ids = torch.randint(0, config.vocab_size, (1, TOKENS))

    def step() -> None:
        loss = model(input_ids=ids, labels=ids).loss  # the logits are gone before the backward pass
        loss.backward()

    events = events_of(step)
    small, large = (reserved(events, scale) for scale in (SCALE, 2 * SCALE))
    return (large - small) / (SCALE * TOKENS)


def counted(config: AutoConfig, name: str) -> tuple[float, float]:
    """Bytes a token by the terms, and those of them that are inputs of checkpointed layers."""
    model = model_from_config(config.to_json_string(use_diff=False), name)
    one = Config(
        model_name=name,
        method="lora",
        gpu_model="A100-SXM4-80GB",
        number_gpus=1,
        tokens_per_sample=SCALE * TOKENS,
        per_device_batch_size=1,
        precision="bfloat16",
        flash_attention=True,
        gradient_checkpointing=True,
        gradient_accumulation_steps=4,
        lora_r=1,
        target_modules="query-value",
    )
    catalogue = shipped_catalogue().with_added({name: model})
    c = columns([one, replace(one, per_device_batch_size=2)], catalogue)
    total = cost_model.memory(c).total
    boundary = float((activations.of_boundary(c) * c.layers)[0])
    return float(total[1] - total[0]) / (SCALE * TOKENS), boundary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for shape in SHAPES:
        config = AutoConfig.for_model(
            shape.architecture,
            hidden_size=shape.hidden,
            intermediate_size=shape.width,
            num_attention_heads=32,
            num_key_value_heads=shape.key_heads,
            vocab_size=shape.vocabulary,
            num_hidden_layers=args.layers,
            pad_token_id=0,
            use_cache=False,
        )
        total, boundary = counted(config, f"shape/{shape.name}")
        kept = held(config)
        error = (total - boundary) / (kept - boundary) - 1
        print(f"{shape.name}: {kept - boundary:,.0f} kept, {total - boundary:,.0f} counted, {error:+.1%}")


if __name__ == "__main__":
    main()
