"""Password hashing, a few passwords at a time.

Each hash is made to take a core for a fifth of a second.
"""

from __future__ import annotations

import os

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from portal.turns import Turns, client_address

turns = Turns(
    at_once=max(1, min(4, (os.cpu_count() or 1) // 2)),
    waiting=2,
    patience_s=1.0,
    busy="Too many people are signing in right now; try again shortly.",
)


class BoundedHasher(PBKDF2PasswordHasher):
    """Django's own hasher, with a bound on how many hashes run at once.

    The hashes are as in the database; checking a password and setting one both pass here.
    """

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with turns.take(client_address.get()):
            return super().encode(password, salt, iterations)
