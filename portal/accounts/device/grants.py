"""Questions of programs for a token, which people find by code and answer."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.db import transaction

from portal.accounts.errors import Changed
from portal.accounts.models import DeviceGrant, Scope, User
from portal.accounts.services import audit, digest_of, hold_active
from portal.accounts.token_bounds import Bounds, check_end

LIVES = timedelta(minutes=10)
INTERVAL_S = 5  # between two questions of a program whether it has been confirmed
KEPT = timedelta(days=1)
# RFC 8628, 6.1: no vowels, so no words, and nothing that is mistaken for another; 34 bits.
ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
CODE_LENGTH = 8


def new_user_code() -> str:
    """Return a code as people read it: `WDJB-MJHT`."""
    return shown("".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH)))


def shown(code: str) -> str:
    """The code with a hyphen in its middle."""
    return f"{code[:4]}-{code[4:]}"


def typed(text: str) -> str:
    """A code as it is stored, however a person wrote it."""
    return "".join(letter for letter in text.upper() if letter.isalnum())[:40]


@transaction.atomic
def ask(
    *, device_code: str, user_code: str, program: str, name: str, scope: Scope, address: str, now: datetime
) -> DeviceGrant:
    """Keep a program's question; those long past go."""
    DeviceGrant.objects.filter(expires_at__lt=now - KEPT).delete()
    return DeviceGrant.objects.create(
        digest=digest_of(device_code),
        user_code=typed(user_code),
        program=program,
        name=name,
        scope=scope,
        address=address,
        created_at=now,
        expires_at=now + LIVES,
        interval_s=INTERVAL_S,
    )


def open_grant(code: str, now: datetime) -> DeviceGrant | None:
    """The question with this code, if it may still be answered."""
    grant = DeviceGrant.objects.filter(user_code=typed(code)).first()
    return grant if grant is not None and grant.is_open_at(now) else None


@transaction.atomic
def confirm(*, grant: DeviceGrant, owner: User, name: str, bounds: Bounds, now: datetime) -> None:
    """Let the program have a token of these bounds; it fetches it by itself.

    Raises Changed when somebody was first or it is too late, InvalidValue, NotAllowed.
    """
    hold_active(owner)
    check_end(bounds.expires_at, now)
    _answer(
        grant, now, owner=owner, name=name, scope=bounds.scope, team=bounds.team,
        token_expires_at=bounds.expires_at, confirmed_at=now,
    )  # fmt: skip
    data = {"program": grant.program, "from": grant.address, "scope": bounds.scope}
    audit(action="program confirmed", actor=owner, target=f"program {name}"[:200], data=data, now=now)


@transaction.atomic
def deny(*, grant: DeviceGrant, owner: User, now: datetime) -> None:
    """Refuse the program; it is told so. Raises Changed."""
    _answer(grant, now, owner=owner, denied_at=now)
    data = {"program": grant.program, "from": grant.address}
    audit(action="program denied", actor=owner, target=f"program {grant.name}"[:200], data=data, now=now)


def _answer(grant: DeviceGrant, now: datetime, **columns: object) -> None:
    here = DeviceGrant.objects.filter(
        pk=grant.pk, confirmed_at__isnull=True, denied_at__isnull=True, expires_at__gt=now
    )
    if not here.update(**columns):
        raise Changed("This code has been used, or its time is over; ask the program for a new one.")
