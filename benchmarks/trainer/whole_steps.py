"""Blocks that PyTorch's allocator keeps of whole steps, played.

    .venv-train/bin/python -m benchmarks.trainer.whole_steps

Dense models at a thirty-second of their real widths learn all weights on the CPU, by AdamW on all tensors at
once, for two steps; allocations are played through the rules of CUDA's allocator
(`benchmarks/trainer/caching_allocator.py`), a thousand times as large. Were all blocks of activations and
logits taken, the peak would have them or the copies, whichever is more; were none, it would have both.

Besides, models whose weights are frozen go forward and back with a loss that makes no logits, as one in
chunks of few tokens does: what is reserved beyond what is allocated at most, as a share of that.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.trainer import caching_allocator
from benchmarks.trainer.caching_allocator import CachingAllocator, events_of
from benchmarks.trainer.frozen_layers import highest
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.hf_config import model_from_config
from knowledge.core.domain.types import Config

NARROWED = 32
# Widths of models, layers, words; tokens of a micro-step and micro-steps of a step.
MISTRAL = (4096, 14336, 32, 32_000)
GRANITE = (2048, 8192, 40, 49_152)
CASES = ((MISTRAL, 2048, 2), (MISTRAL, 8192, 2), (MISTRAL, 16_384, 1), (MISTRAL, 16_384, 2),
         (GRANITE, 2048, 2), (GRANITE, 8192, 2))  # fmt: skip
LLAMA_70B = (8192, 28_672, 80, 32_000)
SAMPLES, STEPS, GIB = 4, 2, 2**30


def shape(sizes: tuple[int, int, int, int], narrowed: int) -> AutoConfig:
    hidden, width, layers, words = sizes
    return AutoConfig.for_model(
        "llama",
        hidden_size=hidden // narrowed,
        intermediate_size=width // narrowed,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=words // narrowed,
        num_hidden_layers=layers,
        pad_token_id=0,
        use_cache=False,
        tie_word_embeddings=False,
    )


def reserved(config: AutoConfig, tokens: int, accumulated: int) -> int:
    """Bytes that the allocator keeps beside the weights."""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    model.enable_input_require_grads()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    ids = torch.randint(0, config.vocab_size, (SAMPLES, tokens // NARROWED // SAMPLES))

    def micro_step() -> None:  # the loss as transformers before 4.48 computes it
        logits = model.lm_head(model.model(input_ids=ids).last_hidden_state).float()
        shifted = logits[..., :-1, :].contiguous()
        cross_entropy(shifted.view(-1, config.vocab_size), ids[..., 1:].flatten()).backward()

    def step() -> None:
        optimizer.step()
        model.zero_grad(set_to_none=True)

    allocator = CachingAllocator()
    for _ in range(STEPS):
        for part in [micro_step] * accumulated + [step]:
            played(allocator, part)
    return allocator.reserved


def frozen(sizes: tuple[int, int, int, int], tokens: int) -> tuple[float, float]:
    """GiB allocated at most, and the share of them that is reserved beyond."""
    model = AutoModelForCausalLM.from_config(shape(sizes, NARROWED), dtype=torch.bfloat16)
    for weight in model.parameters():
        weight.requires_grad = False
    model.enable_input_require_grads()
    model.train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    ids = torch.zeros(SAMPLES, tokens // NARROWED // SAMPLES, dtype=torch.long)
    events = events_of(lambda: model.model(input_ids=ids).last_hidden_state.sum().backward())
    allocated = highest(events) * NARROWED**2
    return allocated / GIB, caching_allocator.reserved(events, NARROWED**2) / allocated - 1


def played(allocator: CachingAllocator, part: Callable[[], None]) -> None:
    """Its allocations as large as those of real widths."""
    gc.collect()
    gc.disable()  # what it frees would be lost between two recordings
    for address, size in events_of(part):
        if size > 0:
            allocator.allocate(address, size * NARROWED**2)
        else:
            allocator.release(address)
    gc.enable()


def counted(sizes: tuple[int, int, int, int], tokens: int, accumulated: int) -> tuple[float, float, float]:
    """Bytes of states beside weights, of a step's copies, and of blocks by the terms."""
    model = model_from_config(shape(sizes, 1).to_json_string(use_diff=False), "shape/whole")
    config = Config(
        model_name="shape/whole",
        tuning="full",
        gpu_model="A100-SXM4-80GB",
        number_gpus=1,
        tokens_per_sample=tokens // SAMPLES,
        per_device_batch_size=SAMPLES,
        gradient_accumulation_steps=accumulated,
        precision="bfloat16",
        flash_attention=True,
        gradient_checkpointing=True,
        optimizer_state="adamw-bf16",
    )
    stated = cost_model.memory(columns([config], shipped_catalogue().with_added({"shape/whole": model})))
    blocks = stated.activations + stated.logits + stated.cached
    return float((stated.gradients + stated.optimizer)[0]), float(stated.weights[0]), float(blocks[0])


def main() -> None:
    torch.set_num_threads(1)
    print("| hidden | layers | tokens | allocated, frozen | reserved beyond it |\n" + "| --- " * 5 + "|")
    for sizes in (GRANITE, MISTRAL, LLAMA_70B):
        for tokens in (8192, 16_384, 32_768):
            allocated, share = frozen(sizes, tokens)
            print(f"| {sizes[0]} | {sizes[2]} | {tokens} | {allocated:.1f} GiB | {share:.0%} |", flush=True)
    print()
    print("| hidden | layers | tokens | micro-steps | blocks | beside states | share that copies take |")
    print("| --- " * 7 + "|")
    for sizes, tokens, accumulated in CASES:
        states, copies, blocks = counted(sizes, tokens, accumulated)
        beside = reserved(shape(sizes, NARROWED), tokens, accumulated) - states
        share = min(1.0, (copies + blocks - beside) / min(copies, blocks))
        figures = f"{blocks / GIB:.1f} GiB | {beside / GIB:.1f} GiB | {share:.2f} |"
        print(f"| {sizes[0]} | {sizes[2]} | {tokens} | {accumulated} | {figures}", flush=True)


if __name__ == "__main__":
    main()
