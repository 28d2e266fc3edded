"""Names and numbers as people write them: one rule for each.

It holds in forms, addresses and on command lines. Python also reads 1_000 and the digits of other scripts,
which few readers tell from one another. Standard library only; agents and portal use it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from argparse import ArgumentTypeError

# Letters and signs without a shape, which count as printable.
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
VARIATIONS = range(0xFE00, 0xFE10)
WHOLE = "Enter a whole number in the digits 0 to 9, e.g. 1000."
DECIMAL = "Enter a number in the digits 0 to 9, e.g. 0.5 or 1e-4."
_WHOLE = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def clean_name(text: str) -> str:
    """Return the name in NFC, so that equal ones are equal texts.

    Raises ValueError with the remedy if something in it is invisible: control characters, marks that turn
    the direction of writing, spaces of another width, letters without a shape. Two names could look alike,
    or one like another.
    """
    name = unicodedata.normalize("NFC", text)
    for place, char in enumerate(name, 1):
        if not char.isprintable() or char in BLANK or ord(char) in VARIATIONS:
            what = f"U+{ord(char):04X}, {unicodedata.name(char, 'a control character')}"
            raise ValueError(f"character {place} is invisible ({what}); delete it, or type the name anew")
    return name


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
