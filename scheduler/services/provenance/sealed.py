"""Readings, signed so that a form or a program can send them along with a job.

Nothing is stored until then, and nobody else can write such a text.
"""

from __future__ import annotations

from django.core import signing

from portal.accounts.models import User
from scheduler.services.provenance.read_values import ReadValues

LONGEST = 20_000  # characters of a seal
VALID_S = 24 * 3600


def sealed(user: User, read: ReadValues) -> str:
    """A text that only the same person can send back.

    Empty where nothing was read, or more than may be sent back.
    """
    seal = signing.dumps(read.as_json(), salt=_salt(user), compress=True) if read.values else ""
    return seal if len(seal) <= LONGEST else ""


def unsealed(user: User, text: str) -> ReadValues | None:
    """The reading signed for this person within a day; None without one."""
    try:
        return ReadValues.from_json(signing.loads(text, salt=_salt(user), max_age=VALID_S))
    except signing.BadSignature:
        return None


def _salt(user: User) -> str:
    return f"read-values/{user.pk}"
