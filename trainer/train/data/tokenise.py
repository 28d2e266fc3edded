"""From rendered rows to tokens, many rows at a time.

The tokenizer's threads share a batch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from trainer.formats import Row
from trainer.train.data.batches import Codes
from trainer.train.data.render import Rendered, Renderer
from trainer.train.data.spans import Span
from trainer.train.data.stops import Stops, opening
from trainer.train.errors import TrainError

ROWS, _CHARACTERS = 1000, 500_000  # of a batch: tens of MB while it is tokenised, and less than a second
_NO_END = (
    "The model's chat template writes no end behind an answer, and the model knows no end-of-sequence token:"
    " it would never learn to stop. Choose a model that has one."
)

_NOT_EMBEDDED = (
    "stands in its text, and the model has no embedding for it. Leave it out, or resize the model's"
    " embeddings with resize_token_embeddings."
)


@dataclass(slots=True)
class Counts:
    """What people should know of the tokens of a file.

    given: turns that were given an end, by its id.
    endless: turns within a chat that no token ends.
    cut: rows that were longer than the longest length.
    cut_tokens: what they lost; tokens: of all rows, uncut.
    last, earlier: ids of the tokens that end rows, and turns of chats before the last one.
    """

    given: Counter[int] = field(default_factory=Counter)
    endless: int = 0
    cut: int = 0
    cut_tokens: int = 0
    tokens: int = 0
    last: set[int] = field(default_factory=set)
    earlier: set[int] = field(default_factory=set)

    def learnt_ends(self, stops: Stops) -> tuple[int, ...]:
        """Tokens that end what the model says, beyond those at which it stops already.

        Where a template ends the last turn itself, that is how the model ends when it is used,
        whatever stands behind earlier turns (`<|return|>` and `<|end|>` of gpt-oss).
        """
        ends = self.last or {*self.earlier, *self.given}
        return tuple(sorted(ends - stops.announced))


class Tokeniser:
    """Rows as codes (see Sample), cut to `longest` tokens.

    embedded: tokens that the model has an embedding for.
    """

    def __init__(
        self, tokenizer: Any, renderer: Renderer, stops: Stops, longest: int, embedded: int = 2**31
    ) -> None:
        self._tokenizer, self._renderer, self._stops = tokenizer, renderer, stops
        self._longest, self._embedded, self._rows = longest, embedded, 0
        self._opening = opening(tokenizer)
        self.counts = Counts()

    def batches(self, rows: Iterable[Row]) -> Iterator[list[Codes]]:
        """Yield all rows, in order.

        Raises TrainError that names the number of a row which the chat template refuses.
        """
        batch: list[Rendered] = []
        characters = 0
        for number, row in enumerate(rows, 1):
            try:
                batch.append(self._renderer.render(row))
            except TrainError as wrong:
                raise TrainError(f"Row {number}: {wrong}") from wrong
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
        for number, ids in enumerate(encoded["input_ids"], self._rows + 1):
            if ids and (highest := max(ids)) >= self._embedded:
                token = self._tokenizer.convert_ids_to_tokens(highest)
                raise TrainError(f"Row {number}: {token} {_NOT_EMBEDDED}")
        self._rows += len(batch)
        pairs = zip(batch, encoded["input_ids"], encoded["offset_mapping"], strict=True)
        return [self._cut(self._codes(row, ids, offsets)) for row, ids, offsets in pairs]

    def _cut(self, codes: Codes) -> Codes:
        more = max(0, len(codes) - self._longest)
        self.counts.tokens += len(codes)
        self.counts.cut_tokens += more
        self.counts.cut += more > 0
        return codes[: self._longest]

    def _codes(self, row: Rendered, ids: list[int], offsets: Sequence[Span]) -> Codes:
        codes = np.array(ids, dtype=np.int32)
        end = len(ids)
        for spans in row.turns:
            for span in spans:
                low, end = self._tokens_within(span, ids, offsets)
                _learn(codes, low, end)
            if row.is_chat:
                end = self._ended(row.text, ids, offsets, end, is_last=spans is row.turns[-1])
                _learn(codes, low, min(end, len(ids)))
        head = [] if row.is_chat or ids[:1] == self._opening[:1] else self._opening
        is_open = end > len(ids) if row.is_chat else not self._ends_itself(row.text, ids, offsets)
        appended = self._stops.appended
        tail = [~appended] if is_open and appended is not None else []
        return np.concatenate((head, codes, tail), dtype=np.int32, casting="unsafe")

    def _ends_itself(self, text: str, ids: list[int], offsets: Sequence[Span]) -> bool:
        """Does a text bring its end?"""
        last = _last_of(text, offsets, len(ids))
        token = ids[last] if last >= 0 and ids[last] in self._stops.known else self._stops.appended
        if token is not None:
            self.counts.last.add(token)
        return last >= 0 and ids[last] == token

    def _tokens_within(self, span: Span, ids: list[int], offsets: Sequence[Span]) -> tuple[int, int]:
        """A token is within if any of its characters is.

        Where a prompt ends in a space, that space and the completion's first word are often one
        token. An added token that only begins within is of what follows: two of them share `<|`.
        """
        low = bisect_right(offsets, span[0], key=itemgetter(1))
        high = bisect_left(offsets, span[1], key=itemgetter(0))
        if low < high and offsets[high - 1][1] > span[1] and ids[high - 1] in self._stops.whole:
            high -= 1
        return low, high

    def _ended(self, text: str, ids: list[int], offsets: Sequence[Span], end: int, *, is_last: bool) -> int:
        """Return where a turn that ends before the token `end` ends, its end learnt.

        It is one beyond the text's tokens where the row needs an end behind them.
        """
        following = _next_of(text, offsets, end)
        is_last = is_last and following == len(ids)
        last = _last_of(text, offsets, end)
        if last >= 0 and ids[last] in self._stops.special:
            (self.counts.last if is_last else self.counts.earlier).add(ids[last])
            return end
        if following < len(ids) and ids[following] in self._stops.special:
            self.counts.given[ids[following]] += 1
            return following + 1
        if following < len(ids):
            self.counts.endless += 1
            return end
        if self._stops.appended is None:
            raise TrainError(_NO_END)
        self.counts.given[self._stops.appended] += 1
        return following + 1


def _learn(codes: Codes, low: int, high: int) -> None:
    part = codes[low:high]
    codes[low:high] = np.minimum(part, ~part)


def _is_blank(text: str, offset: Span) -> bool:
    return not text[offset[0] : offset[1]].strip()


def _last_of(text: str, offsets: Sequence[Span], end: int) -> int:
    """The last token before `end` that is no white space; -1 if there is none."""
    return next((at for at in range(end - 1, -1, -1) if not _is_blank(text, offsets[at])), -1)


def _next_of(text: str, offsets: Sequence[Span], begin: int) -> int:
    """The first token from `begin` on that is no white space.

    It is the number of tokens if there is none.
    """
    return next((at for at in range(begin, len(offsets)) if not _is_blank(text, offsets[at])), len(offsets))
