"""Names as people read them: jobs, files, teams, nodes and tokens have one rule.

Standard library only; agents and portal use it.
"""

from __future__ import annotations

import unicodedata

# Letters and signs without a shape, which count as printable.
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
VARIATIONS = range(0xFE00, 0xFE10)


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
