"""The text of a token: `ft-`, random characters and a checksum.

Scanners for leaked secrets find it by `ft-[0-9A-Za-z]{49}`, and by the checksum tell it from what only looks
like one; a mistyped token is refused without a query.
"""

from __future__ import annotations

import re
import secrets
import string
import zlib

PREFIX = "ft-"
ALPHABET = string.digits + string.ascii_letters  # nothing at which scanners and double clicks stop
RANDOM_LENGTH = 43  # 256 bits
CHECKSUM_LENGTH = 6  # CRC-32 in base 62
_LOOK = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{RANDOM_LENGTH + CHECKSUM_LENGTH}}}", re.ASCII)


def new_text() -> str:
    """Return the text of a new token."""
    begin = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return begin + _checksum(begin)


def is_whole(text: str) -> bool:
    """Does the text have the form of a token, and the checksum of its characters?"""
    return bool(_LOOK.fullmatch(text)) and _checksum(text[:-CHECKSUM_LENGTH]) == text[-CHECKSUM_LENGTH:]


def _checksum(text: str) -> str:
    rest, digits = zlib.crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        rest, digit = divmod(rest, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
