"""Numbers as forms and addresses have them: ASCII digits alone.

Python also reads 1_000 and the digits of other scripts, which few readers tell from one another.
"""

from __future__ import annotations

import re

WHOLE = "Enter a whole number in the digits 0 to 9, e.g. 1000."
DECIMAL = "Enter a number in the digits 0 to 9, e.g. 0.5 or 1e-4."
_WHOLE = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def is_plain_whole(text: str) -> bool:
    """Is the text a whole number? Zeros may follow a point, as browsers send them."""
    return bool(_WHOLE.fullmatch(text.strip()))


def is_plain_decimal(text: str) -> bool:
    """Is the text a number, which may have a fraction and a power of ten?"""
    return bool(_DECIMAL.fullmatch(text.strip()))
