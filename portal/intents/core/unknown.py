"""Words that nothing was made of, and what is done elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.intents.core.lexicon import ELSEWHERE, ENGLISH, FOREIGN, NUMBER_WORDS, STOP_WORDS
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal

WORD = re.compile(r"[^\W\d_](?:[^\W_]|['-](?=[^\W\d_]))*")


def open_words(text: Sentence, proposals: Sequence[Proposal]) -> list[re.Match[str]]:
    """Content words in no proposal's span."""
    used = [(c.start, c.end) for c in proposals]
    return [
        word
        for word in WORD.finditer(text.low)
        if not any(word.start() < end and start < word.end() for start, end in used)
        and len(word.group()) > 1
        and re.sub(r"['-]", "", word.group()) not in STOP_WORDS
        and word.group() not in NUMBER_WORDS
    ]


def elsewhere(words: Sequence[re.Match[str]]) -> tuple[str, ...]:
    """A note for each thing asked for that another system does."""
    asked = dict.fromkeys(ELSEWHERE[word.group()] for word in words if word.group() in ELSEWHERE)
    return tuple(f"Not done here: {what}; the job trains a model and stores it." for what in asked)


def is_foreign(text: Sentence) -> bool:
    """Is the sentence in another language than English, of which only names are read?"""
    words = WORD.findall(text.low)
    foreign = sum(word in FOREIGN for word in words)
    return foreign >= 2 and foreign > sum(word in ENGLISH for word in words)
