"""The most unusual lines of a log beside those of runs that succeeded.

A line's weight is the mean inverse document frequency of its words, idf = ln((1 + N) / (1 + df)) + 1, where
the documents are the lines of the other logs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from knowledge.reading.failures.troubled_lines import LogLine

MOST_UNUSUAL = 10
_WORD = re.compile(r"[A-Za-z_]{2,40}")
_MOST_WORDS = 60  # of a line


def unusual_lines(lines: Sequence[LogLine], usual: Iterable[str]) -> list[LogLine]:
    """Return up to ten lines that are least like the usual ones, in the log's order.

    Of lines with the same words only the first counts.
    """
    seen: Counter[str] = Counter()
    count = 0
    for text in usual:
        seen.update(set(_words(text)))
        count += 1
    first: dict[tuple[str, ...], LogLine] = {}
    for line in lines:
        if words := _words(line.text):
            first.setdefault(words, line)
    weights = {words: _weight(words, seen, count) for words in first}
    chosen = sorted(first, key=lambda words: (-weights[words], -first[words].number))[:MOST_UNUSUAL]
    return sorted((first[words] for words in chosen), key=lambda line: line.number)


def _words(text: str) -> tuple[str, ...]:
    """The words of a line; numbers differ from line to line and say nothing here."""
    return tuple(word.casefold() for word in _WORD.findall(text)[:_MOST_WORDS])


def _weight(words: Sequence[str], seen: Counter[str], count: int) -> float:
    return sum(math.log((1 + count) / (1 + seen[word])) + 1 for word in words) / len(words)
