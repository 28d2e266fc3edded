"""Tokens and the audit record: the only code that writes them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from portal.accounts import token_text
from portal.accounts.errors import InvalidValue, NotAllowed, TokenEnded
from portal.accounts.models import ApiToken, AuditEntry, DeviceGrant, Scope, Team, User
from portal.accounts.token_bounds import Bounds, check_end, latest_end, refuse_greater

HINT_LENGTH = len(token_text.PREFIX) + 4
OVERLAP = timedelta(days=1)  # how long a rotated token still works
USED_FOR_LENGTH = 100
# A write per request would make every read of the API a writer; a minute is exact enough for people.
USED_RESOLUTION = timedelta(minutes=1)
REFUSAL_RESOLUTION = timedelta(hours=1)
LAST_MOMENT = datetime.max.replace(tzinfo=UTC)


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
    if not _held(user, is_active=True):
        raise NotAllowed("Your account has been deactivated; an administrator can reactivate it.")


def _held(user: User, **columns: object) -> bool:
    """Hold the person's row until the transaction ends, if it has these values."""
    return User.objects.select_for_update(no_key=True).filter(pk=user.pk, **columns).exists()


def _hold_makers(*, owner: User, actor: User | None, through: ApiToken | None, now: datetime) -> None:
    """Hold who makes a token, and for whom.

    So whoever ends tokens at the same time ends this one too. People come before tokens, here and wherever
    tokens end. Raises NotAllowed where one of them, or the token that asks, has ended meanwhile.
    """
    if actor is not None and actor != owner:
        hold_active(actor)
        if not _held(owner, is_active=True):
            raise NotAllowed(f"The account {owner.get_username()} has ended; let it in again first.")
    else:
        hold_active(owner)
    if through is not None:
        asking = ApiToken.objects.select_for_update(no_key=True, of=("self",)).filter(pk=through.pk).first()
        if asking is None or not asking.is_valid_at(now):
            raise NotAllowed("The token of this request has just ended.")


@transaction.atomic
def create_token(
    *,
    owner: User,
    name: str,
    now: datetime,
    scope: Scope = Scope.WRITE,
    expires_at: datetime | None = None,
    team: Team | None = None,
    networks: Sequence[str] = (),
    actor: User | None = None,
    follows: ApiToken | None = None,
    through: ApiToken | None = None,
    text: str | None = None,
) -> tuple[ApiToken, str]:
    """Create a token and return it with its text.

    The text is stored nowhere and can be shown only now. actor: who makes it, where that is not its owner.
    follows: the token whose place it takes. through: the token that asks for it. text: one of `token_text`,
    where it had to be made before. Raises NotAllowed, and InvalidValue for an end later than allowed and for
    a team that is not the owner's.
    """
    _hold_makers(owner=owner, actor=actor, through=through, now=now)
    check_end(expires_at, now)
    if team is not None and not owner.memberships.filter(team=team).exists():
        raise InvalidValue("team", f"{team.name} is not a team of {owner.get_username()}.")
    plain = text or token_text.new_text()
    token = ApiToken.objects.create(
        owner=owner,
        name=name,
        scope=scope,
        team=team,
        networks=list(networks),
        digest=digest_of(plain),
        hint=plain[:HINT_LENGTH],
        created_at=now,
        expires_at=expires_at,
        follows=follows,
    )
    data: dict[str, Any] = {"scope": scope}
    if team is not None:
        data["team"] = team.name
    if actor not in (None, owner):
        data["owner"] = owner.get_username()
    if follows is not None:
        data["follows"] = follows.pk
    audit(action="token created", actor=actor or owner, target=f"token {token.pk}", data=data, now=now)
    return token, plain


def create_bound_token(
    *,
    owner: User,
    name: str,
    bounds: Bounds,
    now: datetime,
    actor: User | None = None,
    follows: ApiToken | None = None,
    through: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """`create_token` with its bounds in one value.

    Raises NotAllowed also for one that may do more than the token that asks for it.
    """
    refuse_greater(through, bounds)
    given = {field.name: getattr(bounds, field.name) for field in fields(bounds)}
    makers: dict[str, Any] = {"actor": actor, "follows": follows, "through": through}
    return create_token(owner=owner, name=name, now=now, **makers, **given)


@transaction.atomic
def rotate_token(
    *, token: ApiToken, actor: User, now: datetime, through: ApiToken | None = None
) -> tuple[ApiToken, str]:
    """Put a new token in a token's place: of the same name, bounds and time to live.

    The old one goes on for a day. A successor that was never used, since the answer with its text was lost,
    ends and makes room for another one. through: the token that asks for it, which gets no greater one than
    itself unless it rotates itself. Raises TokenEnded, NotAllowed.
    """
    through = None if through == token else through
    _hold_makers(owner=token.owner, actor=actor, through=through, now=now)
    token = ApiToken.objects.select_for_update(of=("self",)).select_related("owner", "team").get(pk=token.pk)
    if not token.is_valid_at(now):
        raise TokenEnded("This token has ended; create a new one.")
    successor = ApiToken.objects.filter(follows=token).first()
    if successor is not None:
        if successor.last_used_at is not None:
            raise TokenEnded("This token was rotated already, and its successor is in use; rotate that one.")
        ApiToken.objects.filter(pk=successor.pk).update(follows=None)
        revoke_token(token=successor, actor=actor, now=now)
    # The end of a token that was rotated before is that of its overlap.
    ends = [end for end in (latest_end(now), _same_life(successor or token, now)) if end is not None]
    bounds = replace(Bounds.of(token), expires_at=min(ends, default=None))
    made = create_bound_token(
        owner=token.owner,
        name=token.name,
        bounds=bounds,
        now=now,
        actor=actor,
        follows=token,
        through=through,
    )
    overlap_end = min(now + OVERLAP, token.expires_at or now + OVERLAP)
    ApiToken.objects.filter(pk=token.pk).update(expires_at=overlap_end)
    return made


def _same_life(token: ApiToken, now: datetime) -> datetime | None:
    """When a token ends that is to live as long as this one was to; None: never."""
    if token.expires_at is None:
        return None
    return now + min(token.expires_at - token.created_at, LAST_MOMENT - now)


def revoke_token(*, token: ApiToken, actor: User, now: datetime) -> ApiToken:
    """End a token at once; revoking it again changes nothing."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=now):
        audit(action="token revoked", actor=actor, target=f"token {token.pk}", now=now)
    token.refresh_from_db()
    return token


@transaction.atomic
def revoke_tokens(*, owner: User, actor: User, now: datetime) -> int:
    """End all of a person's tokens at once; returns how many there were.

    Those that a program is about to fetch are denied, and one that is being made is waited for.
    """
    _held(owner)
    fetched = DeviceGrant.objects.filter(owner=owner, collected_at__isnull=True, denied_at__isnull=True)
    fetched.update(denied_at=now)
    ended = ApiToken.objects.filter(owner=owner, revoked_at__isnull=True).update(revoked_at=now)
    if ended:
        target = f"user {owner.get_username()}"
        audit(action="tokens revoked", actor=actor, target=target, data={"tokens": ended}, now=now)
    return ended


def find_token(*, plain: str, now: datetime, address: str = "", used_for: str = "") -> ApiToken | None:
    """Return the valid token of an active person with this text, else None.

    Its use is noted: address and used_for say from where and for what. A text that is no token's costs no
    query.
    """
    if not token_text.is_whole(plain):
        return None
    token = ApiToken.objects.select_related("owner", "team").filter(digest=digest_of(plain)).first()
    if token is None or not token.is_valid_at(now) or not token.owner.is_active:
        return None
    if token.last_used_at is None or now - token.last_used_at > USED_RESOLUTION:
        use = {"last_used_for": used_for[:USED_FOR_LENGTH], "last_used_from": address[:64]}
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now, **use)
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
