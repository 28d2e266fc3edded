"""Rows as tokens: what the model reads, and which of it counts in the loss.

Only completions and assistant turns are trained (labels of everything else are -100, the index that
torch's cross entropy ignores).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from trainer.formats import Chat, FormatError, Row, rows
from trainer.train.errors import TrainError

IGNORED = -100
Span = tuple[int, int]


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
    try:
        first = _first_token(tokenizer)
        samples = [_sample(row, tokenizer, longest, first) for row in rows(path)]
    except FormatError as wrong:
        raise TrainError(f"{path.name} cannot be used: {wrong}") from wrong
    barren = sum(sample.targets == 0 for sample in samples)
    if barren == len(samples):
        raise TrainError(
            f"No row of {path.name} has anything to learn within {longest} tokens: the completions begin "
            "later. Raise tokens_per_sample or shorten the prompts."
        )
    if barren:
        print(f"{barren} of {len(samples)} rows of {path.name} have no completion within {longest} tokens")
    return samples


def _sample(row: Row, tokenizer: Any, longest: int, first: Sequence[int]) -> Sample:
    """first: the token that the tokenizer puts before every text, if it does."""
    text, spans = _render(row, tokenizer)
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, labels = encoded["input_ids"], _labels(encoded["input_ids"], encoded["offset_mapping"], spans)
    end = tokenizer.eos_token_id
    if first and ids[:1] != first:
        ids, labels = [*first, *ids], [IGNORED, *labels]
    if end is not None and not (isinstance(row, Chat) and tokenizer.chat_template):
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


def _render(row: Row, tokenizer: Any) -> tuple[str, list[Span]]:
    """The text of a row and the spans of it that are trained."""
    if not isinstance(row, Chat):
        text = row.prompt + row.completion
        return text, [(len(row.prompt), len(text))]
    if tokenizer.chat_template:
        return _render_template(row, tokenizer)
    text, spans = "", []
    for turn in row.messages:
        begin = len(text) + len(f"{turn.role}: ")
        text += f"{turn.role}: {turn.content}\n"
        if turn.role == "assistant" and turn.weight:
            spans.append((begin, len(text)))
    return text, spans


def _render_template(row: Chat, tokenizer: Any) -> tuple[str, list[Span]]:
    """The model's own chat template. A turn's span lies between the conversation before it, up to the
    generation prompt, and the conversation with it; where a template rewrites earlier turns, only what the
    renderings share is trained, never another role's text."""
    turns = [{"role": turn.role, "content": turn.content} for turn in row.messages]
    whole = _apply(tokenizer, turns)
    spans = []
    for index, turn in enumerate(row.messages):
        if turn.role == "assistant" and turn.weight:
            before = _apply(tokenizer, turns[:index], add_generation_prompt=True) if index else ""
            begin = _shared(before, whole)
            last = index + 1 == len(turns)
            end = len(whole) if last else _shared(_apply(tokenizer, turns[: index + 1]), whole)
            if begin < end:
                spans.append((begin, end))
    return whole, spans


def _shared(one: str, other: str) -> int:
    """Length of the common beginning."""
    if other.startswith(one):
        return len(one)
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _apply(tokenizer: Any, turns: list[dict[str, str]], **options: bool) -> str:
    try:
        return tokenizer.apply_chat_template(turns, tokenize=False, **options)
    except Exception as wrong:  # a template is a program of the model's author: anything may go wrong
        raise TrainError(f"The model's chat template refuses a row: {wrong}") from wrong


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
