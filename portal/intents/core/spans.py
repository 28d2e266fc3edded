"""The text as readers see it.

It is normalised, in small letters, with the way back to what was typed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from portal.intents.core.lexicon import UNITS
from portal.intents.core.spelling import spelled
from portal.intents.core.types import MAX_CHARACTERS, MAX_TOKENS

_ALIKE = str.maketrans(
    dict.fromkeys("‐‑‒–—―−", "-")
    | dict.fromkeys("‘’‚`´", "'")
    | dict.fromkeys("“”„«»", '"')
    | {"×": "x", "⁄": "/"}
)
_CIRCLED = "⓪①②③④⑤⑥⑦⑧⑨"
_TOKEN = re.compile(r"\w+|[^\w\s]")
_HOUR = "|".join(word for word, value in UNITS.items() if 0 < value <= 12)
_CLOCK = re.compile(
    rf"\b(?:{_HOUR})(?=\s*(?:o'?\s?clock|[ap]\.?m\b))|(?<=\bpast )(?:{_HOUR})\b|(?<=\bat )"
    rf"(?:{_HOUR})(?=\s*(?:$|[,;.!?]|in\s+the\s+(?:morning|afternoon|evening)))"
)
_WORD = re.compile(r"(?<![\w.@/\\_-])[a-z]{5,}(?![\w@/\\_-]|\.\w)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, as it came and as readers see it.

    `typed`: as it came. `low`: for readers. `origin[i]` is where `low[i]` was typed.
    """

    typed: str
    low: str
    origin: tuple[int, ...]

    def words(self, start: int, end: int) -> tuple[int, int]:
        """The characters of `typed` behind a span of `low`."""
        if start >= end:
            return (0, 0)
        return self.origin[start], self.origin[end - 1] + 1

    def as_typed(self, start: int, end: int) -> str:
        """The words behind a span, as they were typed."""
        first, last = self.words(start, end)
        return self.typed[first:last]

    def find(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """All matches of a pattern in the text that readers see."""
        return pattern.finditer(self.low)

    def blanked(self, spans: list[tuple[int, int]]) -> str:
        """The text with spaces in place of spans."""
        characters = list(self.low)
        for start, end in spans:
            characters[start:end] = " " * (end - start)
        return "".join(characters)


def text_of(typed: str) -> Sentence:
    """Normalise a text and put typing errors in keywords right.

    Normalised are NFKC, dashes, quotes, and letters' case. Of a longer text only the first 1,000 characters
    and 200 tokens are read. Characters that nobody sees are dropped.
    """
    pairs: list[tuple[str, int]] = []
    for place, character in enumerate(typed[:MAX_CHARACTERS]):
        kind = unicodedata.category(character)
        if kind == "Cf" or kind == "Cs":
            continue
        plain = " " if kind == "Cc" else _plain(character)
        if plain[1:2] == "/" and pairs and pairs[-1][0].isdigit():
            plain = f" {plain}"  # 1½ is not 11/2
        pairs += [(c, place) for c in plain.lower()]
    return _short(
        _clock_words(_respelled(Sentence(typed, "".join(c for c, _ in pairs), tuple(p for _, p in pairs))))
    )


def _plain(character: str) -> str:
    """The character as readers know it.

    A raised, lowered or circled digit is none of the number beside it, and one of another script is none that
    they read: they see it as circled.
    """
    if unicodedata.decomposition(character).startswith(("<super>", "<sub>", "<circle>")):
        return character
    plain = unicodedata.normalize("NFKC", character).translate(_ALIKE)
    if plain.isdecimal() and not plain.isascii():
        return _CIRCLED[int(plain)]
    return plain


def _respelled(text: Sentence) -> Sentence:
    return replaced(text, _WORD, lambda found: spelled(found.group()))


def _clock_words(text: Sentence) -> Sentence:
    return replaced(text, _CLOCK, lambda found: str(UNITS[found.group()]))


def replaced(text: Sentence, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> Sentence:
    """Return the text with matches replaced.

    Each new character stems from the match as a whole.
    """
    low: list[str] = []
    origin: list[int] = []
    done = 0
    for found in pattern.finditer(text.low):
        new = by(found)
        if new == found.group():
            continue
        start, end = found.span()
        low += (text.low[done:start], new)
        origin += text.origin[done:start]
        first, last = text.origin[start], text.origin[end - 1]
        origin += [min(first + i, last) for i in range(len(new) - 1)] + [last] if new else []
        done = end
    low.append(text.low[done:])
    origin += text.origin[done:]
    return Sentence(text.typed, "".join(low), tuple(origin))


def _short(text: Sentence) -> Sentence:
    for count, token in enumerate(_TOKEN.finditer(text.low)):
        if count == MAX_TOKENS:
            return Sentence(text.typed, text.low[: token.start()], text.origin[: token.start()])
    return text
