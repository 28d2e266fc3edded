"""Bytes a token that a GPU's allocator would keep, beside what the terms say.

    .venv-train/bin/python -m benchmarks.trainer.reserved [--layers 2]

Models of real sizes but few layers, their weights frozen and in bfloat16, on the CPU: one forward and
backward pass with checkpointing and the model's own loss, or with that of fms-hf-tuning from 2.8 on, where
granite's mixtures hand out logits in float32 and TRL copies all but each sample's last. Its allocations are
played through the rules of CUDA's allocator (`benchmarks/trainer/caching_allocator.py`), at two sizes that a
GPU would have; all that grows with the tokens counts, but for the inputs of checkpointed layers, which both
sides know.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import torch
from torch.nn.functional import cross_entropy
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
    samples: int = 1
    software: str | None = None  # that counts tokens predicted right, and hands out logits in float32

    def config(self, layers: int) -> AutoConfig:
        mixture = {"num_local_experts": 40, "num_experts_per_tok": 8} if "moe" in self.architecture else {}
        return AutoConfig.for_model(
            self.architecture,
            hidden_size=self.hidden,
            intermediate_size=self.width,
            num_attention_heads=self.hidden // 64 if mixture else 32,
            num_key_value_heads=self.key_heads,
            vocab_size=self.vocabulary,
            num_hidden_layers=layers,
            pad_token_id=0,
            use_cache=False,
            **mixture,
        )


A800M = ("granitemoe", 1536, 512, 8, 49_155)
SHAPES = (
    Shape("Llama 2 7B", "llama", 4096, 11008, 32, 32_000),
    Shape("Mistral 7B", "mistral", 4096, 14336, 8, 32_000),
    Shape("Granite 3.1 2B", "granite", 2048, 8192, 8, 49_155),
    Shape("Granite 3.1 8B", "granite", 4096, 12800, 8, 49_155),
    Shape("Llama 3.2 1B", "llama", 2048, 8192, 8, 128_256),
    Shape("Granite 3.1 3B A800M", *A800M),
    Shape("the same, counted, one sample", *A800M, 1, "3.0.0"),
    Shape("the same, counted, two samples", *A800M, 2, "3.0.0"),
)


def checkpointed(shape: Shape, layers: int) -> torch.nn.Module:
    """A model with frozen weights, as one with adapters goes back."""
    model = AutoModelForCausalLM.from_config(shape.config(layers), dtype=torch.bfloat16)
    for weight in model.parameters():
        weight.requires_grad = False
    model.enable_input_require_grads()
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def held(shape: Shape, layers: int) -> float:
    """Bytes a token that the allocator keeps."""
    model = checkpointed(shape, layers)
    ids = torch.randint(0, shape.vocabulary, (shape.samples, TOKENS // shape.samples))

    def step() -> None:
        loss = counted_loss(model, ids) if shape.software else model(input_ids=ids, labels=ids).loss
        loss.backward()  # the logits are gone before it

    events = events_of(step)
    small, large = (reserved(events, scale) for scale in (SCALE, 2 * SCALE))
    return (large - small) / (SCALE * TOKENS)


def counted_loss(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """The loss of float32 logits that a copy of theirs outlives, without their last position."""
    logits = model(input_ids=ids).logits.float()
    targets = torch.nn.functional.pad(ids[:, 1:], (0, 1), value=-100)
    loss = cross_entropy(logits.view(-1, logits.shape[-1]), targets.flatten())
    shifted = logits[..., :-1, :].contiguous()
    (shifted.argmax(-1) == ids[:, 1:]).sum()
    return loss


def counted(shape: Shape, layers: int) -> tuple[float, float]:
    """Bytes a token by the terms, and those of them that are inputs of checkpointed layers."""
    name = f"shape/{shape.name}"
    model = model_from_config(shape.config(layers).to_json_string(use_diff=False), name)
    one = Config(
        model_name=name,
        tuning="lora",
        gpu_model="A100-SXM4-80GB",
        number_gpus=1,
        tokens_per_sample=SCALE * TOKENS // shape.samples,
        per_device_batch_size=shape.samples,
        precision="bfloat16",
        flash_attention=True,
        gradient_checkpointing=True,
        gradient_accumulation_steps=4,
        lora_r=1,
        target_modules="query-value",
        software=shape.software,
    )
    catalogue = shipped_catalogue().with_added({name: model})
    c = columns([one, replace(one, tokens_per_sample=2 * one.tokens_per_sample)], catalogue)
    total = cost_model.memory(c).total
    boundary = float((activations.of_boundary(c) * c.layers)[0])
    return float(total[1] - total[0]) / (SCALE * TOKENS), boundary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for shape in SHAPES:
        total, boundary = counted(shape, args.layers)
        kept = held(shape, args.layers)
        error = (total - boundary) / (kept - boundary) - 1
        print(f"{shape.name}: {kept - boundary:,.0f} kept, {total - boundary:,.0f} counted, {error:+.1%}")


if __name__ == "__main__":
    main()
