"""Tokens and the audit record: the only code that writes them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from portal.accounts.errors import NotAllowed
from portal.accounts.models import ApiToken, AuditEntry, Scope, User

TOKEN_PREFIX = "ft-"  # noqa: S105 (no secret: what all tokens begin with)
HINT_LENGTH = len(TOKEN_PREFIX) + 4
# A write per request would make every read of the API a writer; a minute is exact enough for people.
USED_RESOLUTION = timedelta(minutes=1)
REFUSAL_RESOLUTION = timedelta(hours=1)


def digest_of(plain: str) -> str:
    """Return the SHA-256 in hexadecimal.

    Tokens carry 256 random bits, so a slow hash would add nothing.
    """
    return hashlib.sha256(plain.encode()).hexdigest()


def hold_active(user: User) -> None:
    """Hold the person active until the transaction ends.

    Nobody can lock them out meanwhile, so a later lock-out finds everything that is made now.
    Raises NotAllowed for a person who was locked out since the request began.
    """
    if not User.objects.select_for_update(no_key=True).filter(pk=user.pk, is_active=True).exists():
        raise NotAllowed("Your account has been deactivated; an administrator can reactivate it.")


@transaction.atomic
def create_token(
    *,
    owner: User,
    name: str,
    now: datetime,
    scope: Scope = Scope.WRITE,
    expires_at: datetime | None = None,
) -> tuple[ApiToken, str]:
    """Create a token and return it with its text.

    The text is stored nowhere and can be shown only now. Raises NotAllowed.
    """
    hold_active(owner)
    plain = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        owner=owner,
        name=name,
        scope=scope,
        digest=digest_of(plain),
        hint=plain[:HINT_LENGTH],
        created_at=now,
        expires_at=expires_at,
    )
    audit(action="token created", actor=owner, target=f"token {token.pk}", data={"scope": scope}, now=now)
    return token, plain


def revoke_token(*, token: ApiToken, actor: User, now: datetime) -> ApiToken:
    """End a token at once; revoking it again changes nothing."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=now):
        audit(action="token revoked", actor=actor, target=f"token {token.pk}", now=now)
    token.refresh_from_db()
    return token


def revoke_tokens(*, owner: User, actor: User, now: datetime) -> int:
    """End all of a person's tokens at once; returns how many there were."""
    ended = ApiToken.objects.filter(owner=owner, revoked_at__isnull=True).update(revoked_at=now)
    if ended:
        target = f"user {owner.get_username()}"
        audit(action="tokens revoked", actor=actor, target=target, data={"tokens": ended}, now=now)
    return ended


def find_token(*, plain: str, now: datetime) -> ApiToken | None:
    """Return the valid token of an active person with this text, else None.

    Its use is noted.
    """
    token = ApiToken.objects.select_related("owner").filter(digest=digest_of(plain)).first()
    if token is None or not token.is_valid_at(now) or not token.owner.is_active:
        return None
    if token.last_used_at is None or now - token.last_used_at > USED_RESOLUTION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def audit(
    *,
    action: str,
    now: datetime,
    actor: User | None = None,
    node: str = "",
    target: str = "",
    data: Mapping[str, Any] | None = None,
    address: str = "",
) -> AuditEntry:
    """Add one line to the audit record.

    Never pass secrets in `data`: the record is shown and exported.
    """
    return AuditEntry.objects.create(
        at=now,
        actor=actor,
        actor_name=actor.get_username() if actor else "",
        node=node,
        action=action,
        target=target,
        data=dict(data or {}),
        address=address,
    )


def audit_refusal(*, action: str, now: datetime, address: str, data: Mapping[str, Any]) -> None:
    """Note that a stranger was refused.

    Each address is noted once in a while only, so that strangers cannot fill the record.
    """
    recent = AuditEntry.objects.filter(action=action, address=address, at__gt=now - REFUSAL_RESOLUTION)
    if not recent.exists():
        audit(action=action, now=now, address=address, data=data)
