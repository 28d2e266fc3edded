"""Rows as tokens: what the model reads, and which of it counts in the loss.

Only completions and assistant turns are trained (labels of everything else are -100, the index that
torch's cross entropy ignores).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from trainer.formats import FormatError, Unused, rows
from trainer.train.data.render import Rendered, Renderer
from trainer.train.data.spans import Span
from trainer.train.errors import TrainError

IGNORED = -100


@dataclass(frozen=True, slots=True)
class Sample:
    """A tokenised row, cut to the longest length. `targets`: predicted tokens that count in the loss."""

    ids: array[int]
    labels: array[int]
    targets: int

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch, padded on the right to its longest row; three tensors of (rows, tokens)."""

    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor


def read_samples(path: Path, tokenizer: Any, longest: int) -> list[Sample]:
    """All rows of a file. Raises TrainError for a bad row or where no row has anything to learn."""
    renderer, unused = Renderer(tokenizer, datetime.now(UTC)), Unused()
    try:
        first = _first_token(tokenizer)
        samples = [_sample(renderer.render(row), tokenizer, longest, first) for row in rows(path, unused)]
    except FormatError as wrong:
        raise TrainError(f"{path.name} cannot be used: {wrong}") from wrong
    barren = sum(sample.targets == 0 for sample in samples)
    if barren == len(samples):
        raise TrainError(
            f"No row of {path.name} has anything to learn within {longest} tokens: the completions begin "
            "later. Raise tokens_per_sample or shorten the prompts."
        )
    if unused.names:
        print(f"fields of {path.name} that are not used: {', '.join(unused.names)}")
    if renderer.rewritten:
        print(f"the chat template cuts or changes {renderer.rewritten:,} turns of {path.name}")
    if barren:
        print(f"{barren} of {len(samples)} rows of {path.name} have no completion within {longest} tokens")
    return samples


def _sample(row: Rendered, tokenizer: Any, longest: int, first: Sequence[int]) -> Sample:
    """first: the token that the tokenizer puts before every text, if it does."""
    encoded = tokenizer(row.text, add_special_tokens=False, return_offsets_mapping=True)
    ids, labels = encoded["input_ids"], _labels(encoded["input_ids"], encoded["offset_mapping"], row.spans)
    end = tokenizer.eos_token_id
    if first and ids[:1] != first:
        ids, labels = [*first, *ids], [IGNORED, *labels]
    if end is not None and not row.closed:
        ids, labels = [*ids, end], [*labels, end]
    ids, labels = ids[:longest], labels[:longest]
    return Sample(array("i", ids), array("i", labels), len(labels[1:]) - labels[1:].count(IGNORED))


def _first_token(tokenizer: Any) -> list[int]:
    begin = tokenizer.bos_token_id
    return [] if begin is None or tokenizer("")["input_ids"][:1] != [begin] else [begin]


def _labels(ids: Sequence[int], offsets: Sequence[Span], spans: Sequence[Span]) -> list[int]:
    """A token is trained if any of its characters lies in a trained span of the text.

    Where a prompt ends in a space, that space and the completion's first word are often one token.
    """
    labels = [IGNORED] * len(ids)
    for begin, end in spans:
        low = bisect_right(offsets, begin, key=itemgetter(1))
        high = bisect_left(offsets, end, key=itemgetter(0))
        labels[low:high] = ids[low:high]
    return labels


def collate(samples: Sequence[Sample], pad: int, device: torch.device) -> Batch:
    """Pad to the longest row of this micro-batch."""
    longest = max(map(len, samples))
    ids = torch.full((len(samples), longest), pad, dtype=torch.long)
    labels = torch.full((len(samples), longest), IGNORED, dtype=torch.long)
    mask = torch.zeros((len(samples), longest), dtype=torch.long)
    for row, sample in enumerate(samples):
        size = len(sample)
        ids[row, :size] = torch.tensor(sample.ids)
        labels[row, :size] = torch.tensor(sample.labels)
        mask[row, :size] = 1
    return Batch(ids.to(device), mask.to(device), labels.to(device))
