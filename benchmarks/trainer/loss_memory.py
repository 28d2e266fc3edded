"""Memory and time of one training step's loss, at once and in chunks.

    .venv-train/bin/python -m benchmarks.trainer.loss_memory [--vocabulary 128256 --tokens 2048 --trained 0.5]

Compares all logits at once with chunks over the trained positions, on one layer of width 512 on
the CPU in float32, each way in a process of its own. Peaks are of resident memory beyond the
model's own; times are of one forward and backward pass, the best of three.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

WAYS = ("all at once", "in chunks")


def measure(way: str, vocabulary: int, tokens: int, trained: float) -> tuple[float, float]:
    """(bytes beyond the model, seconds of a step)."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    from trainer.train.data import IGNORED
    from trainer.train.loss import TokenLoss

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=512, intermediate_size=1024, num_hidden_layers=1,
        num_attention_heads=8, num_key_value_heads=8,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.requires_grad_(False)
    model.model.layers.requires_grad_(True)
    ids = torch.randint(0, vocabulary, (1, tokens))
    labels = ids.clone()
    labels[:, : round(tokens * (1 - trained))] = IGNORED
    chunked = TokenLoss(model)

    def step() -> None:
        if way == WAYS[1]:
            loss = chunked(ids, labels)
        else:
            logits = model(input_ids=ids, use_cache=False).logits[:, :-1].float().flatten(0, 1)
            loss = torch.nn.functional.cross_entropy(logits, labels[:, 1:].flatten(), reduction="sum")
        loss.backward()

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = []
    for _ in range(3):
        begun = time.process_time()
        step()
        took.append(time.process_time() - begun)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, min(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=128_256)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--trained", type=float, default=0.5, help="share of the tokens that are trained")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(*measure(given.way, given.vocabulary, given.tokens, given.trained))
        return
    sizes = [f"--{name}={getattr(given, name)}" for name in ("vocabulary", "tokens", "trained")]
    found = {}
    for way in WAYS:
        command = [sys.executable, "-m", "benchmarks.trainer.loss_memory", f"--way={way}", *sizes]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[way] = [float(word) for word in printed.split()]
        print(
            f"{way:12} {found[way][0] / 2**30:6.2f} GiB beyond the model, {found[way][1]:6.2f} CPU s a step"
        )
    memory, seconds = (new / old for new, old in zip(found[WAYS[1]], found[WAYS[0]], strict=True))
    print(f"in chunks: {memory:.2f} of the memory, {seconds:.2f} of the time")


if __name__ == "__main__":
    main()
