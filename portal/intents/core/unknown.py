"""Words that nothing was made of, and what is done elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.intents.core.lexicon import ELSEWHERE, ENGLISH, FOREIGN, NUMBER_WORDS, STOP_WORDS
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

_NUMBER = re.compile(r"(?<![\w/.])(?:\d{1,6}/\d{1,6}|\d{0,6}[^\W\da-z_]{1,6})(?![\w/])")
WORD = re.compile(r"[^\W\d_](?:[^\W_]|['-](?=[^\W\d_]))*")


def open_words(text: Sentence, proposals: Sequence[Proposal]) -> list[re.Match[str]]:
    """Content words, and numbers that are not read, in no proposal's span."""
    words = [word for word in WORD.finditer(text.low) if _is_content(word.group())]
    numbers = [number for number in _NUMBER.finditer(text.low) if _is_unread(number.group())]
    free = [*_outside(words, proposals), *_outside(numbers, [one for one in proposals if one.field])]
    return sorted(free, key=lambda one: one.start())


def _outside(found: Sequence[re.Match[str]], proposals: Sequence[Proposal]) -> list[re.Match[str]]:
    return [one for one in found if not any(one.start() < c.end and c.start < one.end() for c in proposals)]


def _is_content(word: str) -> bool:
    return len(word) > 1 and re.sub(r"['-]", "", word) not in STOP_WORDS and word not in NUMBER_WORDS


def _is_unread(number: str) -> bool:
    """Is it a fraction, or written in other digits than ours?"""
    return "/" in number or any(sign.isnumeric() and not sign.isascii() for sign in number)


def elsewhere(words: Sequence[re.Match[str]]) -> tuple[str, ...]:
    """A note for each thing asked for that another system does."""
    places = dict.fromkeys(ELSEWHERE[word.group()] for word in words if word.group() in ELSEWHERE)
    return tuple(f"Not done here: {what}; the job trains a model and stores it." for what in places)


def is_foreign(text: Sentence) -> bool:
    """Is the sentence in another language than English, of which only names are read?"""
    words = WORD.findall(text.low)
    foreign = sum(word in FOREIGN for word in words)
    return foreign >= 2 and foreign > sum(word in ENGLISH for word in words)
