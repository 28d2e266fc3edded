"""Rows as tokens, and micro-batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Codes = np.ndarray[Any, np.dtype[np.int32]]
IGNORED = -100  # what torch's cross entropy leaves out


@dataclass(frozen=True, slots=True)
class Sample:
    """A row, cut to the longest length.

    codes: for each token its id, or the complement of its id (a negative number) where it
    counts in the loss.
    targets: predicted tokens that count.
    """

    codes: Codes
    targets: int

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def ids(self) -> torch.Tensor:
        codes = torch.from_numpy(self.codes.astype(np.int64))
        return torch.where(codes < 0, ~codes, codes)

    @property
    def labels(self) -> torch.Tensor:
        codes = torch.from_numpy(self.codes.astype(np.int64))
        return torch.where(codes < 0, ~codes, IGNORED)


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch, padded on the right to its longest row.

    Both tensors are of (rows, tokens). No mask says where padding is: no token sees later ones, and padding
    has no label, so nothing depends on it.
    """

    ids: torch.Tensor
    labels: torch.Tensor


def padding(tokenizer: Any, model: Any) -> int:
    """The token to pad with: one that the model has an embedding for.

    Many add a padding token to a tokenizer and leave the model as it is. Which one it is makes no
    difference, since nothing depends on padding.
    """
    token = tokenizer.pad_token_id or 0
    return token if token < embeddings(model) else 0


def embeddings(model: Any) -> int:
    """Tokens that a model has an embedding for."""
    return int(model.config.get_text_config().vocab_size)


def collate(samples: Sequence[Sample], pad: int, device: torch.device) -> Batch:
    """Pad to the longest row of this micro-batch."""
    longest = max(map(len, samples))
    ids = torch.full((len(samples), longest), pad, dtype=torch.long)
    labels = torch.full((len(samples), longest), IGNORED, dtype=torch.long)
    for row, sample in enumerate(samples):
        size = len(sample)
        ids[row, :size] = sample.ids
        labels[row, :size] = sample.labels
    return Batch(ids.to(device), labels.to(device))
