"""Ids of people and teams as programs see them: a prefix that names the kind.

A person or a team may be named by this id or by name wherever one is taken.
"""

from __future__ import annotations

from portal.accounts.models import Team, User

PREFIXES: dict[type[Team | User], str] = {Team: "team-", User: "user-"}
LONGEST_DIGITS = 18  # of a number that a database takes


def public_id(row: Team | User) -> str:
    """E.g. `team-7`."""
    # Who is signed in comes as a lazy object, whose type is another.
    return f"{PREFIXES[Team if isinstance(row, Team) else User]}{row.pk}"


def key_of(model: type[Team | User], text: str) -> int | None:
    """The number that an id names; None for other texts."""
    digits = text.removeprefix(PREFIXES[model])
    if digits == text or not (digits.isascii() and digits.isdigit()) or len(digits) > LONGEST_DIGITS:
        return None
    return int(digits)
