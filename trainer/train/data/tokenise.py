"""From rendered rows to tokens, many rows at a time.

The tokenizer's threads share a batch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from trainer.formats import Row
from trainer.train.data.batches import Codes
from trainer.train.data.render import Rendered, Renderer
from trainer.train.data.spans import Span

ROWS, _CHARACTERS = 1000, 500_000  # of a batch: tens of MB while it is tokenised, and less than a second


class Tokeniser:
    """Rows as codes (see Sample), cut to `longest` tokens."""

    def __init__(self, tokenizer: Any, renderer: Renderer, longest: int) -> None:
        self._tokenizer, self._renderer, self._longest = tokenizer, renderer, longest
        self._first = _first_token(tokenizer)

    def batches(self, rows: Iterable[Row]) -> Iterator[list[Codes]]:
        """Yield all rows, in order.

        Raises TrainError that names a row which the chat template refuses.
        """
        batch: list[Rendered] = []
        characters = 0
        for row in rows:
            batch.append(self._renderer.render(row))
            characters += len(batch[-1].text)
            if len(batch) == ROWS or characters > _CHARACTERS:
                yield self._tokenised(batch)
                batch, characters = [], 0
        if batch:
            yield self._tokenised(batch)

    def _tokenised(self, batch: Sequence[Rendered]) -> list[Codes]:
        encoded = self._tokenizer(
            [row.text for row in batch],
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        pairs = zip(batch, encoded["input_ids"], encoded["offset_mapping"], strict=True)
        return [self._codes(row, np.array(ids, dtype=np.int32), offsets) for row, ids, offsets in pairs]

    def _codes(self, row: Rendered, codes: Codes, offsets: Sequence[Span]) -> Codes:
        """A token is trained if any of its characters lies in a trained span of the text.

        Where a prompt ends in a space, that space and the completion's first word are often one token.
        """
        for begin, end in row.spans:
            low = bisect_right(offsets, begin, key=itemgetter(1))
            high = bisect_left(offsets, end, key=itemgetter(0))
            part = codes[low:high]
            codes[low:high] = np.minimum(part, ~part)
        first, end_token = self._first, self._tokenizer.eos_token_id
        head = first if len(codes) == 0 or max(codes[0], ~codes[0]) not in first else []
        tail = [] if end_token is None or row.closed else [~end_token]
        if head or tail:
            codes = np.concatenate((head, codes, tail), dtype=np.int32, casting="unsafe")
        return codes[: self._longest]


def _first_token(tokenizer: Any) -> list[int]:
    """The token that the tokenizer puts before every text, if it does."""
    begin = tokenizer.bos_token_id
    return [] if begin is None or tokenizer("")["input_ids"][:1] != [begin] else [begin]
