"""Numbers as people write them: 1,500 and 1.5k, two dozen, 2e-4 and 2 x 10^-4."""

from __future__ import annotations

import re

from portal.intents.core.lexicon import NUMBER_WORDS, SCALES, TENS, UNITS

_WORD = "|".join(sorted({*NUMBER_WORDS, *SCALES}, key=len, reverse=True))
_DIGITS = r"\d{1,3}(?:[,']\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?"
WORDS = rf"(?:(?:{_WORD})\b(?:[\s-]+(?:and\s+)?(?:{_WORD})\b)*)"
# A number that starts a word or follows a sign; no groups, so that readers can name theirs.
NUMBER = rf"(?:(?:{_DIGITS})(?:\s?k\b)?|{WORDS})"
COUNT = rf"(?:(?:\d{{1,3}}(?:[,']\d{{3}})+|\d+(?:\.\d+)?)(?:\s?k\b)?|{WORDS})"
POWER = r"\d+(?:[.,]\d+)?\s*[x*]\s*10\s*\^?\s*-\s*\d+"
THOUSAND, KIBI = 1000, 1024
_POWER = re.compile(r"([\d.,]+)\s*[x*]\s*10\s*\^?\s*-\s*(\d+)")
_GROUPED = re.compile(r"\d{1,3}(?:[,']\d{3})+(?:\.\d+)?")
_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+")


def number(text: str, *, kilo: int = THOUSAND, whole: bool = False) -> float | None:
    """The value, or None. `kilo` is what a k stands for; `whole` reads 1.500 as 1500."""
    text = " ".join(text.split()).strip()
    if power := _POWER.fullmatch(text):
        return float(power[1].replace(",", ".")) * 10.0 ** -int(power[2][:3])
    factor = 1
    if text.endswith("k") and text[:1] in "0123456789.":
        text, factor = text[:-1].strip(), kilo
    if not text:
        return None
    if text[0] not in "0123456789.":
        return in_words(text)
    if _GROUPED.fullmatch(text) or (whole and _EUROPEAN.fullmatch(text)):
        text = re.sub(r"[,']", "", text) if _GROUPED.fullmatch(text) else text.replace(".", "")
    try:
        return float(text.replace(",", ".")) * factor
    except ValueError:
        return None


def in_words(text: str) -> float | None:
    """The value of number words, or None.

    Two hundred and fifty is 250, fifteen hundred 1500, two dozen 24.
    """
    total = part = 0
    last = ""
    for word in re.split(r"[\s-]+", text):
        if word == "and":
            continue
        if word in SCALES:
            part = max(1, part) * SCALES[word]
            if SCALES[word] == THOUSAND:
                total, part = total + part, 0
        elif word == "dozen":
            part = max(1, part) * 12
        elif word in NUMBER_WORDS:
            joins = not part or last in SCALES or (last in TENS and 0 < UNITS.get(word, 0) < 10)
            if not joins:
                return None
            part += NUMBER_WORDS[word]
        else:
            return None
        last = word
    return float(total + part)


def plain(value: float) -> float | int:
    """Whole numbers as int."""
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value
