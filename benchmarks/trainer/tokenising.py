"""Time and memory of preparing a training's data, row by row and in batches.

    .venv-train/bin/python -m benchmarks.trainer.tokenising [--tokens 20000000 --row-tokens 500 --template]

Row by row goes into memory, batches go onto the disk. The rows are prompts and completions of
made-up words, or chats with a template; the tokenizer is a byte-level BPE of 8,000 pieces made
on the spot. Each way runs in a process of its own; peaks are of resident memory beyond the
imports, pages of the mapped file included as far as they were read.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path
from typing import Any

WAYS = ("row by row", "in batches")
TEMPLATE = "{% for m in messages %}{{ '<' + m.role + '>' + m.content + '</s>' }}{% endfor %}"


def tokenizer(template: bool) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.train_from_iterator([words(20_000)], trainers.BpeTrainer(vocab_size=8000, special_tokens=["</s>"]))
    return PreTrainedTokenizerFast(
        tokenizer_object=fast, eos_token="</s>", chat_template=TEMPLATE if template else None
    )


def words(number: int, seed: int = 0) -> str:
    chance = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvw" for b in "aeiou"]
    known = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(5000)]
    return " ".join(chance.choices(known, k=number))


def write(path: Path, tokens: int, row_tokens: int, template: bool) -> None:
    texts = [words(row_tokens // 2, seed).split(" ", row_tokens // 8) for seed in range(50)]
    parts = [(" ".join(text[:-1]), " " + text[-1]) for text in texts]
    with path.open("w") as stream:
        for row in range(tokens // row_tokens):
            prompt, reply = parts[row % len(parts)]
            chat = [{"role": "user", "content": prompt}, {"role": "assistant", "content": reply}]
            line = {"messages": chat} if template else {"prompt": prompt, "completion": reply}
            stream.write(json.dumps(line) + "\n")


def row_by_row(path: Path, template: bool) -> int:
    """As a plain trainer does: a row at a time, all of them kept."""
    from trainer.formats import Chat, Text, rows

    fast, kept = tokenizer(template), []
    for row in rows(path):
        assert not isinstance(row, Text)
        if isinstance(row, Chat):
            prompt, reply = row.messages[0].content, row.messages[1].content
            text, begin = f"<user>{prompt}</s><assistant>{reply}</s>", len(prompt) + 21
        else:
            text, begin = row.prompt + row.completion, len(row.prompt)
        encoded = fast(text, add_special_tokens=False, return_offsets_mapping=True)
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        labels = [one if end > begin else -100 for one, (_, end) in zip(ids, offsets, strict=True)]
        kept.append((array("i", ids), array("i", labels)))
    return sum(len(ids) for ids, _ in kept)


def in_batches(path: Path, template: bool) -> int:
    import torch

    from tests.trainer.runs import Run
    from trainer.train.data import prepare
    from trainer.train.distributed.process_group import World
    from trainer.train.events import Journal
    from trainer.train.settings import read_order

    run = Run(path.parent / "run", path.parent, {"tokens_per_sample": 131_072}).write()
    (run.path / "inputs" / "train.jsonl").unlink()
    (run.path / "inputs" / "train.jsonl").symlink_to(path)
    world, journal = World(0, 1, torch.device("cpu")), Journal(run.path / "events.jsonl")
    data = prepare(read_order(run.path), world, tokenizer(template), journal, lambda: False, {})
    return int(sum(data.train.lengths))


def measure(way: str, path: Path, template: bool) -> dict[str, float]:
    import transformers  # noqa: F401

    import trainer.train.loop  # noqa: F401

    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    tokens = (row_by_row if way == WAYS[0] else in_batches)(path, template)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "tokens": tokens,
        "seconds": time.monotonic() - begun,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak_mb": (after.ru_maxrss - before.ru_maxrss) / 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--row-tokens", type=int, default=500)
    parser.add_argument("--template", action="store_true")
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(measure(given.way, given.file, given.template)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        write(path, given.tokens, given.row_tokens, given.template)
        print(f"{path.stat().st_size / 1e6:,.0f} MB of rows")
        found = []
        for way in WAYS:
            command = [
                sys.executable,
                "-m",
                "benchmarks.trainer.tokenising",
                "--way",
                way,
                "--file",
                str(path),
            ]
            command += ["--template"] * given.template
            environment = {**os.environ, "TOKENIZERS_PARALLELISM": "true"}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            found.append(json.loads(done.stdout.splitlines()[-1]))
            reply = "  ".join(f"{name} {value:,.1f}" for name, value in found[-1].items())
            print(f"{way:12} {reply}")
        for name in ("seconds", "cpu_s", "peak_mb"):
            print(f"ratio of {name}: {found[1][name] / found[0][name]:.2f}")


if __name__ == "__main__":
    main()
