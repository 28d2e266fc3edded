"""The rows that each optimiser step reads.

They are a function of seed and step alone, so that resuming is exact.
"""

from __future__ import annotations

import math
import random
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_COUNTED_ROWS = 2_000_000


@dataclass(frozen=True)
class StepPlan:
    """Epochs of shuffled rows laid end to end and cut into batches.

    The last batch borrows from the next epoch, so that every step has the same size.
    lengths: tokens of each row.
    batch: rows per optimiser step.
    micro: rows one process reads at a time.
    """

    lengths: Sequence[int]
    seed: int
    batch: int
    micro: int
    epochs: float
    max_steps: int | None = None

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole training."""
        return self.max_steps or max(1, math.ceil(len(self.lengths) * self.epochs / self.batch))

    def rows(self, step: int) -> list[int]:
        """Indices of the rows of one step; steps count from 0."""
        first = step * self.batch
        return [self._row(position) for position in range(first, first + self.batch)]

    def micro_batches(self, step: int, rank: int = 0, size: int = 1) -> list[list[int]]:
        """Return the rows that process `rank` of `size` reads in one step.

        There is one list for each micro-batch. The rows of a step are sorted by length, the longest first, so
        that little is padded, and processes compute micro-batches of like length at a time.
        """
        rows = sorted(self.rows(step), key=lambda row: (-self.lengths[row], row))
        chunks = [rows[start : start + self.micro] for start in range(0, self.batch, self.micro)]
        return chunks[rank::size]

    def tokens(self, step: int) -> int:
        """Tokens all processes compute in one step, padding included."""
        return sum(map(self._computed, self.micro_batches(step)))

    def row_tokens(self, step: int) -> int:
        """Tokens of the rows of one step."""
        return sum(self.lengths[row] for row in self.rows(step))

    def largest_after(self, step: int) -> list[int]:
        """The rows of the largest micro-batch, padding included.

        It is empty where the first one of that step is as large. Beyond two million rows it is of those
        counted so far.
        """
        largest = max((self.micro_batches(later)[0] for later in self._counted), key=self._computed)
        return largest if self._computed(largest) > self._computed(self.micro_batches(step)[0]) else []

    @property
    def tokens_total(self) -> int:
        """Tokens of the whole training, padding included.

        Beyond two million rows the mean of the rows counted so far is used.
        """
        counted = sum(tokens * number for (_, tokens), number in self._sizes.items())
        return round(counted * self.steps / len(self._counted))

    @property
    def parts(self) -> int:
        """Micro-batches of the whole training, over all processes."""
        return self.steps * math.ceil(self.batch / self.micro)

    @property
    def sizes(self) -> int:
        """How many sizes micro-batches have: rows, and tokens of the longest one.

        Beyond two million rows those of the rows counted so far.
        """
        return len(self._sizes)

    def ends_epoch(self, step: int) -> bool:
        """Does an epoch end within this step?"""
        rows = len(self.lengths)
        return (step + 1) * self.batch // rows > step * self.batch // rows

    @cached_property
    def _sizes(self) -> Counter[tuple[int, int]]:
        """How many micro-batches have each number of rows and of tokens, padded."""
        return Counter(
            (len(c), self._computed(c)) for step in self._counted for c in self.micro_batches(step)
        )

    @property
    def _counted(self) -> range:
        """The steps of the first two million rows, or all."""
        return range(min(self.steps, max(1, _COUNTED_ROWS // self.batch)))

    def _computed(self, rows: Sequence[int]) -> int:
        """Tokens of a micro-batch, padding included."""
        return len(rows) * max(self.lengths[row] for row in rows)

    def _row(self, position: int) -> int:
        epoch, index = divmod(position, len(self.lengths))
        if epoch not in self._orders:
            while len(self._orders) > 1:  # a batch touches a few epochs at most; keep memory flat
                self._orders.pop(min(self._orders))
            order = array("I", range(len(self.lengths)))
            random.Random(f"{self.seed} {epoch}").shuffle(order)
            self._orders[epoch] = order
        return self._orders[epoch][index]

    @cached_property
    def _orders(self) -> dict[int, array[int]]:
        return {}
