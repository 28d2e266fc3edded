"""The peak of a micro-step of LitGPT's loop, beside what physics counts of it.

    PYTHONPATH=FOLDER .venv-train/bin/python -m benchmarks.trainer.litgpt_steps [--vocabulary 16384]

FOLDER is that of `litgpt_terms.py`, whose models these are, of six layers. LitGPT's loop runs on the CPU
under Lightning's Fabric in `bf16-true`: three micro-steps, and the profiler's allocations and releases of the
last two. Their highest sum is beside activations and logits by physics, since weights, gradients and context
were there before. Layers "in 4 bits" make their weights whole, and keep their input, as bitsandbytes before
0.43.2 does it; they are not quantised. Frozen embeddings let the first layer keep less than others, which
physics does not know, and which weighs less the more layers there are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import lightning
import torch
from litgpt.utils import chunked_cross_entropy

from benchmarks.trainer import litgpt_terms
from benchmarks.trainer.caching_allocator import events_of
from benchmarks.trainer.litgpt_terms import CHUNK, HEADS, HIDDEN, RANK, SHAPES, WAYS, WIDTH, Way
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.types import Config

LAYERS, TOKENS, BATCH, ACCUMULATED = 6, 512, 2, 4


class WholeProduct(torch.autograd.Function):
    """A product with a weight made whole, whose input lies on the graph's node."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.tensors = (given, weight)
        return torch.nn.functional.linear(given, weight.clone().to(given.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient @ ctx.tensors[1].clone().to(gradient.dtype), None


def played(name: str, keys: int, way: Way, vocabulary: int) -> int:
    """Bytes of the highest sum of what two micro-steps allocate and do not release yet."""
    fabric = lightning.Fabric(accelerator="cpu", devices=1, precision="bf16-true")
    with fabric.init_module():
        built = litgpt_terms.built(name, keys, way, LAYERS, vocabulary, TOKENS)
    for module in built.modules() if way.in_4_bits else ():
        if isinstance(module, torch.nn.Linear):
            module.weight.data = module.weight.data.half()  # as Lightning quantises
            module.forward = _whole(module.weight)
    model = fabric.setup_module(built)
    ids = torch.randint(1, 100, (BATCH, TOKENS))

    def steps(count: int) -> None:
        # The loop of `litgpt/finetune`: logits keep their name until there are new ones.
        for _ in range(count):
            if way.placed is None:
                logits = model(ids)
                loss = chunked_cross_entropy(logits[..., :-1, :], ids[..., 1:])
            else:
                logits = model(ids, lm_head_chunk_size=CHUNK)
                logits[-1] = logits[-1][..., :-1, :]
                loss = chunked_cross_entropy(logits, ids[..., 1:])
            fabric.backward(loss / ACCUMULATED)
            loss = loss.item()

    steps(1)  # gradients are there
    held = highest = 0
    for _, size in events_of(lambda: steps(2)):
        held += size
        highest = max(highest, held)
    return highest


def _whole(weight: torch.Tensor) -> Callable[[torch.Tensor], Any]:
    return lambda given: WholeProduct.apply(given, weight)


def counted(architecture: str, keys: int, way: Way, vocabulary: int) -> float:
    """Bytes of activations and logits by physics."""
    shape = litgpt_terms.shape_of(architecture, keys, LAYERS, vocabulary)
    config = Config(
        model_name=shape.model_name,
        tuning="full" if way.placed is None else ("qlora" if way.in_4_bits else "lora"),
        gpu_model="A10G",
        number_gpus=1,
        tokens_per_sample=TOKENS,
        per_device_batch_size=BATCH,
        gradient_accumulation_steps=ACCUMULATED,
        precision="bfloat16",
        quantization="bnb-4bit" if way.in_4_bits else "none",
        unquantized_float32=False if way.in_4_bits else None,
        lora_r=None if way.placed is None else RANK,
        target_modules=way.placed,
        optimizer_state="adamw-bf16",
        flash_attention=architecture != "gemma2",
        gradient_checkpointing=False,
        software="LitGPT bitsandbytes 0.42.0" if way.in_4_bits else "LitGPT",
    )
    table = columns([config], shipped_catalogue().with_added({shape.model_name: shape}))
    memory = cost_model.memory(table)
    return float(memory.activations[0] + memory.logits[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=16384)
    given = parser.parse_args()
    torch.nn.functional.dropout = litgpt_terms.dropped
    print(f"{LAYERS} layers of width {HIDDEN} and {WIDTH}, {HEADS} heads, {given.vocabulary} words")
    for name, architecture, keys in SHAPES:
        for way in WAYS:
            held = played(name, keys, way, given.vocabulary)
            error = counted(architecture, keys, way, given.vocabulary) / held - 1
            print(f"{name}, {way.name}: {held / 1e6:.1f} MB held, {error:+.1%}", flush=True)


if __name__ == "__main__":
    main()
