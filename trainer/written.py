"""Names and numbers as people write them: one rule for each.

It holds in forms, addresses and on command lines. Python also reads 1_000 and the digits of other scripts,
which few readers tell from one another. Standard library only; agents and portal use it.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from argparse import ArgumentTypeError
from collections.abc import Collection, Iterable

# Letters and signs without a shape, which count as printable.
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
VARIATIONS = frozenset(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
MONGOLIAN_MARKS = frozenset("\u180b\u180c\u180d\u180e\u180f")
JOINERS = frozenset("\u200c\u200d")
# Scripts whose letters take another shape beside a joiner, as the names of their characters begin.
_JOINED_SCRIPTS = """
ADLAM AHOM ARABIC BALINESE BATAK BENGALI BHAIKSUKI BRAHMI BUGINESE CHAKMA CHAM CHORASMIAN DEVANAGARI DIVES
DOGRA GRANTHA GUJARATI GUNJALA GURMUKHI HANIFI JAVANESE KAITHI KANNADA KHAROSHTHI KHMER KHOJKI KHUDAWADI
LEPCHA LIMBU MALAYALAM MANDAIC MANICHAEAN MASARAM MEETEI MODI MONGOLIAN MYANMAR NANDINAGARI NEWA NKO OLD
ORIYA PHAGS-PA PSALTER REJANG SAURASHTRA SHARADA SIDDHAM SINHALA SOGDIAN SUNDANESE SYLOTI SYRIAC TAI TAKRI
TAMIL TELUGU TIBETAN TIRHUTA ZANABAZAR
"""
JOINED_SCRIPTS = frozenset(_JOINED_SCRIPTS.split())
# Pictures, those included that Python's tables do not know yet, and the invisible signs that belong to them:
# a variation selector, joiners between pictures, a key's cap, the tags of a flag (Unicode UTS 51).
_PICTURE = (
    "[©®‼⁉™ℹ↔-↙↩↪⌚-⏿Ⓜ▪-➿⤴⤵⬅-⭕〰〽㊗㊙\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
    "[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
)
_PICTURES = re.compile(
    "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,7}\U000e007f"
    f"|{_PICTURE}(?:\u200d{_PICTURE})*"
    "|[0-9#*]\ufe0f\u20e3"
)
WHOLE = "Enter a whole number in the digits 0 to 9, e.g. 1000."
DECIMAL = "Enter a number in the digits 0 to 9, e.g. 0.5 or 1e-4."
_WHOLE = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def composed(text: str) -> str:
    """Return the text in NFC, so that what looks equal is equal, however it was typed."""
    return unicodedata.normalize("NFC", text)


def clean_name(text: str) -> str:
    """Return the name in NFC, so that equal ones are equal texts.

    Raises ValueError with the remedy if something in it is invisible: control characters, marks that turn
    the direction of writing, spaces of another width, letters without a shape. Two names could look alike,
    or one like another. What changes the shape of a neighbour is taken beside such a one: joiners between
    letters of scripts that join, variation selectors after Han characters, and the parts of an emoji.
    """
    name = composed(text)
    parts_of_pictures = {place for found in _PICTURES.finditer(name) for place in range(*found.span())}
    for place, char in enumerate(name):
        if place in parts_of_pictures or not _is_invisible(char) or _shapes_neighbours(name, place):
            continue
        what = f"U+{ord(char):04X}, {unicodedata.name(char, 'a control character')}"
        raise ValueError(f"character {place + 1} is invisible ({what}); delete it, or type the name anew")
    return name


def _is_invisible(char: str) -> bool:
    return not char.isprintable() or char in BLANK or char in VARIATIONS or char in MONGOLIAN_MARKS


def _shapes_neighbours(name: str, place: int) -> bool:
    """Does this invisible character stand where the script of its neighbours needs it?"""
    char, before, after = name[place], name[place - 1 : place], name[place + 1 : place + 2]
    if char in JOINERS:
        # Also a plural or the like behind a foreign word or a number, as Persian has it.
        written_on = unicodedata.category(before or " ")[0] in "LMN"
        return _joins(after) and (_joins(before) or (char == "\u200c" and written_on))
    if char in MONGOLIAN_MARKS:
        return _script(before) == "MONGOLIAN"
    return char in VARIATIONS and char not in "\ufe0e\ufe0f" and _script(before) == "CJK"


def _joins(char: str) -> bool:
    """Is it a letter, or a mark on one, of a script that joins?"""
    return _script(char) in JOINED_SCRIPTS and unicodedata.category(char)[0] in "LM"


def _script(char: str) -> str:
    """The first word of a character's name: of letters and marks the script."""
    return unicodedata.name(char, "").partition(" ")[0] if char else ""


def strange_names(names: Iterable[str], known: Collection[str], what: str) -> dict[str, str]:
    """What is wrong with names that are not known, and the nearest one to each.

    The first of those that resemble none is told all that are known. what: e.g. `is not a parameter`.
    """
    told: dict[str, str] = {}
    is_listed = False
    for name in names:
        if near := difflib.get_close_matches(name.lower(), known, n=1):
            told[name] = f"{what}; did you mean {near[0]}?"
        elif is_listed:
            told[name] = what
        else:
            is_listed = True
            told[name] = f"{what}; " + (
                f"known are {', '.join(known)}" if known else "nothing is; leave it out"
            )
    return told


def is_plain_whole(text: str) -> bool:
    """Is the text a whole number? Zeros may follow a point, as browsers send them."""
    return bool(_WHOLE.fullmatch(text.strip()))


def is_plain_decimal(text: str) -> bool:
    """Is the text a number, which may have a fraction and a power of ten?"""
    return bool(_DECIMAL.fullmatch(text.strip()))


def whole(text: str) -> int:
    """A whole number of a command line; argparse tells the error."""
    if not is_plain_whole(text):
        raise ArgumentTypeError(f"{text!r} is no whole number. {WHOLE}")
    return int(text.partition(".")[0])


def decimal(text: str) -> float:
    """A number of a command line, which is finite; argparse tells the error."""
    if not is_plain_decimal(text) or not math.isfinite(value := float(text)):
        raise ArgumentTypeError(f"{text!r} is no number. {DECIMAL}")
    return value
