"""Bytes that a GPU's allocator keeps where samples are of many lengths.

    .venv-train/bin/python -m benchmarks.trainer.varied_lengths [--model "Mistral 7B"] [--layers 4]

Micro-batches of one sample, with checkpointing, as `benchmarks/trainer/reserved.py` plays them: once with the
longest sample, and 300 times with lengths from a lognormal distribution (its mean and deviation are those of
the data of ms-swift's benchmark), cut at a limit. Blocks of one length seldom fit another, so the allocator
keeps both.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from benchmarks.trainer.caching_allocator import CachingAllocator, Event, events_of
from benchmarks.trainer.reserved import SHAPES, TOKENS, checkpointed

MEAN, DEVIATION, SHORTEST, STEPS = 3234.4, 2547.5, 91, 300
LIMITS = (512, 1024, 2048, 4096, 8192)


def lengths() -> np.ndarray:
    spread = np.log(1 + (DEVIATION / MEAN) ** 2)
    drawn = np.random.default_rng(0).lognormal(np.log(MEAN) - spread / 2, np.sqrt(spread), STEPS)
    return np.maximum(drawn, SHORTEST)


def kept(events: Sequence[Event], tokens: Iterable[float]) -> int:
    """Bytes reserved after steps of so many tokens, each of the events of TOKENS."""
    allocator = CachingAllocator()
    for count in tokens:
        for address, size in events:
            if size > 0:
                allocator.allocate(address, int(size * count / TOKENS))
            else:
                allocator.release(address)
    return allocator.reserved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="Mistral 7B", choices=[shape.name for shape in SHAPES])
    parser.add_argument("--layers", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shape = next(shape for shape in SHAPES if shape.name == args.model)
    model = checkpointed(shape, args.layers)
    ids = torch.randint(0, shape.vocabulary, (1, TOKENS))
    events = events_of(lambda: model(input_ids=ids, labels=ids).loss.backward())
    print("| limit | samples that are cut | kept, longest alone | many lengths |\n" + "| --- " * 4 + "|")
    for limit in LIMITS:
        tokens = np.minimum(lengths(), limit)
        alone, many = kept(events, [limit]), kept(events, tokens)
        cut = np.mean(tokens == limit)
        print(f"| {limit:,} | {cut:.0%} | {alone / 1e9:.2f} GB | {many / alone:.2f} times |", flush=True)


if __name__ == "__main__":
    main()
