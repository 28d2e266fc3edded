"""Users: made, changed and locked out by administrators; every act leaves a line in the audit record."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from portal.accounts.errors import Changed, NotAllowed, Refused
from portal.accounts.models import User
from portal.accounts.services import audit

PASSWORD_BYTES = 12
TAKEN = "This name is taken; choose another."

Data = Mapping[str, object]  # what the record says beside the act


@dataclass(frozen=True, slots=True)
class Profile:
    """What an administrator may change of a person."""

    email: str
    is_staff: bool

    @classmethod
    def of(cls, user: User) -> Profile:
        return cls(email=user.email, is_staff=user.is_staff)


def require_admin(actor: User) -> None:
    """Raises NotAllowed."""
    if not actor.is_admin:
        raise NotAllowed("Only administrators may do this.")


def create_user(*, actor: User, username: str, profile: Profile, now: datetime) -> tuple[User, str]:
    """A new person and a password made for them, which is stored nowhere and can be shown only now.

    Raises Refused for a name that is taken, in capitals or not, NotAllowed.
    """
    require_admin(actor)
    if User.objects.filter(username__iexact=username).exists():
        raise Refused("username", TAKEN)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    try:
        with transaction.atomic():
            user = User.objects.create_user(
                username, profile.email, password, is_staff=profile.is_staff, is_superuser=profile.is_staff
            )
            _note("user created", user, actor, now, asdict(profile))
    except IntegrityError as taken:
        raise Refused("username", TAKEN) from taken
    return user, password


@transaction.atomic
def change_user(*, user: User, profile: Profile, seen: Profile, actor: User, now: datetime) -> User:
    """Change what the actor saw as `seen`. Raises Changed if it is no longer so, NotAllowed, Refused."""
    require_admin(actor)
    if user == actor and not profile.is_staff:
        raise Refused("is_staff", "You cannot take this role from yourself; ask another administrator.")
    here = User.objects.filter(pk=user.pk, **asdict(seen))
    if not here.update(**asdict(profile), is_superuser=profile.is_staff):
        raise Changed("Someone changed this person meanwhile; look again and decide anew.")
    _note("user changed", user, actor, now, {"from": asdict(seen), "to": asdict(profile)})
    user.refresh_from_db()
    return user


@transaction.atomic
def set_active(*, user: User, active: bool, actor: User, now: datetime) -> User:
    """Let a person in or lock them out. Doing it again changes nothing. Raises NotAllowed, Refused."""
    require_admin(actor)
    if user == actor:
        raise Refused("active", "You cannot lock yourself out; ask another administrator.")
    if User.objects.filter(pk=user.pk, is_active=not active).update(is_active=active):
        _note("user let in" if active else "user locked out", user, actor, now)
    user.refresh_from_db()
    return user


@transaction.atomic
def reset_password(*, user: User, actor: User, now: datetime) -> str:
    """A new password for a person, shown only now; all their sessions end. Raises NotAllowed."""
    require_admin(actor)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user.set_password(password)
    user.save(update_fields=["password"])
    _note("password reset", user, actor, now)
    return password


def _note(action: str, user: User, actor: User, now: datetime, data: Data | None = None) -> None:
    target = f"user {user.get_username()}"
    audit(action=action, actor=actor, target=target, data=data, now=now)
