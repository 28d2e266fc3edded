"""Users, created, changed and locked out by administrators.

Every act leaves a line in the audit record.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from portal.accounts.errors import Changed, InvalidValue, NotAllowed
from portal.accounts.models import User
from portal.accounts.selectors import manages
from portal.accounts.services import audit, revoke_tokens

PASSWORD_BYTES = 12
TAKEN = "This name is taken; choose another one."

Data = Mapping[str, object]  # what the record says beside the act


@dataclass(frozen=True, slots=True)
class Profile:
    """The fields of a person that an administrator may change."""

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
    """Create a person with a generated password.

    The password is stored nowhere and can be shown only now. Raises InvalidValue for a name that is
    taken, in capitals or not, NotAllowed.
    """
    require_admin(actor)
    if User.objects.filter(username__iexact=username).exists():
        raise InvalidValue("username", TAKEN)
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    try:
        with transaction.atomic():
            user = User.objects.create_user(
                username, profile.email, password, is_staff=profile.is_staff, is_superuser=profile.is_staff
            )
            _note("user created", user, actor, now, asdict(profile))
    except IntegrityError as taken:
        raise InvalidValue("username", TAKEN) from taken
    return user, password


@transaction.atomic
def change_user(*, user: User, profile: Profile, seen: Profile, actor: User, now: datetime) -> User:
    """Change the values that the actor saw as `seen`.

    Raises Changed if they are no longer the same, NotAllowed, Refused.
    """
    _hold_administrators(actor)
    if user == actor and not profile.is_staff:
        raise InvalidValue(
            "is_staff", "You cannot remove your own administrator role; ask another administrator."
        )
    here = User.objects.filter(pk=user.pk, **asdict(seen))
    if not here.update(**asdict(profile), is_superuser=profile.is_staff):
        raise Changed("Someone else has changed this user. Reload, check, and try again.")
    _note("user changed", user, actor, now, {"from": asdict(seen), "to": asdict(profile)})
    user.refresh_from_db()
    return user


@transaction.atomic
def lock_out(*, user: User, actor: User, now: datetime, successor: User | None = None) -> User:
    """End a person's access at once.

    None of their sessions and tokens works any more, not even after `let_in`. `successor` gets
    their jobs. Locking the person out again changes nothing else. Raises NotAllowed, Refused.
    """
    if not _runs(actor, user):
        _hold_administrators(actor)
    if user == actor:
        raise InvalidValue("active", "You cannot deactivate your own account; ask another administrator.")
    if successor is not None and (successor == user or not successor.is_active):
        raise InvalidValue("hand_over_to", "Name another user whose account is active.")
    User.objects.filter(pk=user.pk).update(successor=successor)
    if User.objects.filter(pk=user.pk, is_active=True).update(is_active=False, lockouts=F("lockouts") + 1):
        to = {"hand_over_to": successor.get_username()} if successor else {}
        _note("user locked out", user, actor, now, to)
    revoke_tokens(owner=user, actor=actor, now=now)
    user.refresh_from_db()
    return user


@transaction.atomic
def let_in(*, user: User, actor: User, now: datetime) -> User:
    """Let a person in again; ended sessions and tokens stay ended.

    Letting a person in twice has no further effect. Raises NotAllowed.
    """
    if not _runs(actor, user):
        require_admin(actor)
    if User.objects.filter(pk=user.pk, is_active=False).update(is_active=True, successor=None):
        _note("user let in", user, actor, now)
    user.refresh_from_db()
    return user


def _runs(actor: User, user: User) -> bool:
    """Is this a service account that the actor runs?"""
    return user.is_service and manages(actor, user)


def _hold_administrators(actor: User) -> None:
    """Hold all active administrators until the transaction ends.

    So no two administrators take each other's access at once: one is left. Raises NotAllowed.
    """
    held = User.objects.select_for_update().filter(is_staff=True, is_active=True).order_by("pk")
    if actor.pk not in [admin.pk for admin in held]:
        raise NotAllowed("Only administrators may do this.")


@transaction.atomic
def reset_password(*, user: User, actor: User, now: datetime) -> str:
    """Set a new password for a person and return it.

    It is shown only now; all sessions of the person end. Raises NotAllowed, and InvalidValue for a service
    account.
    """
    require_admin(actor)
    if user.is_service:
        raise InvalidValue("user", "A service account has no password; make a token for it.")
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user.set_password(password)
    user.save(update_fields=["password"])
    _note("password reset", user, actor, now)
    return password


def note_own_password(*, user: User, now: datetime) -> None:
    """The record says that a person changed their own password."""
    _note("password changed", user, user, now)


def share_sentences(*, user: User, shared: bool) -> None:
    """Let sentences of the person's jobs be exported as examples, or not any more."""
    User.objects.filter(pk=user.pk).update(shares_sentences=shared)


def _note(action: str, user: User, actor: User, now: datetime, data: Data | None = None) -> None:
    target = f"user {user.get_username()}"
    audit(action=action, actor=actor, target=target, data=data, now=now)
