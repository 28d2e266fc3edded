"""Bytes a logit that a GPU's allocator keeps where a shifted copy of logits is made.

    .venv-train/bin/python -m benchmarks.trainer.shifted_logits

A head, a loss and a backward pass on the CPU, played through the rules of CUDA's allocator
(`benchmarks/trainer/caching_allocator.py`): as transformers computes them, whose mixtures of Granite hand
logits on in float32, and with the copy by which TRL's SFTTrainer counts the tokens that were predicted right.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from benchmarks.trainer.caching_allocator import events_of, reserved

HIDDEN, TOKENS = 64, 1024
VOCABULARIES = {"Granite 3.1": 49_155, "Granite 4.0": 100_352}


def kept(vocabulary: int, samples: int, *, wide: bool, copied: bool) -> float:
    """Bytes a logit. wide: handed on in float32."""
    head = torch.nn.Linear(HIDDEN, vocabulary, bias=False, dtype=torch.bfloat16).requires_grad_(False)
    states = torch.randn(samples, TOKENS // samples, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(0, vocabulary, (samples, TOKENS // samples))

    def loss() -> torch.Tensor:
        logits = head(states)
        logits = logits / 6.0
        if wide:
            logits = logits.float()
        found = functional.cross_entropy(logits.float().view(-1, vocabulary), labels.view(-1))
        if copied:
            logits[..., :-1, :].contiguous().argmax(dim=-1)
        return found

    def step() -> None:
        loss().backward()

    return reserved(events_of(step), 1) / (TOKENS * vocabulary)


def main() -> None:
    torch.set_num_threads(1)
    print("| words | samples | in 16 bits | and copied | in float32 | and copied |\n" + "| --- " * 6 + "|")
    for name, vocabulary in VOCABULARIES.items():
        for samples in (1, 2, 8):
            found = [
                kept(vocabulary, samples, wide=wide, copied=copied)
                for wide in (False, True)
                for copied in (False, True)
            ]
            print(f"| {name} | {samples} | " + " | ".join(f"{each:.1f}" for each in found) + " |")


if __name__ == "__main__":
    main()
