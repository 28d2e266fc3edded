"""Typing errors in keywords, put right where only one keyword can have been meant."""

from __future__ import annotations

from collections.abc import Iterable

from portal.intents.core.lexicon import ORDINARY, SPELLED

_KNOWN = frozenset(SPELLED)
_BY_INITIAL: dict[str, list[str]] = {}
for _word in SPELLED:
    _BY_INITIAL.setdefault(_word[0], []).append(_word)
SHORTEST, LONG = 5, 8


def spelled(word: str) -> str:
    """The keyword that a word is a typing error of, or the word itself.

    The first letter must agree. One error is forgiven, in long words two; in words of five letters no
    letter may have become another, as that makes ordinary words (nodes, notes).
    """
    if len(word) < SHORTEST or word in _KNOWN or word in ORDINARY:
        return word
    near = _near(word, _BY_INITIAL.get(word[0], ()))
    return near[0] if len(near) == 1 else word


def _near(word: str, keywords: Iterable[str]) -> list[str]:
    found: dict[int, list[str]] = {}
    for keyword in keywords:
        if word.rstrip("s") == keyword.rstrip("s") or (
            len(word) == len(keyword) == SHORTEST and not _swapped(word, keyword)
        ):
            continue
        limit = 2 if min(len(word), len(keyword)) >= LONG else 1
        if abs(len(word) - len(keyword)) <= limit and (errors := distance(word, keyword)) <= limit:
            found.setdefault(errors, []).append(keyword)
    return found[min(found)] if found else []


def _swapped(word: str, keyword: str) -> bool:
    return sorted(word) == sorted(keyword)


def distance(one: str, other: str) -> int:
    """Count the letters to insert, drop, change or swap.

    Letters are swapped with their neighbour (optimal string alignment).
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        last, before, row = before, row, [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
