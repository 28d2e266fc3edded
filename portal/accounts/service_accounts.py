"""Accounts for programs: made by administrators, or by the leads of a team for it.

They own their jobs and have tokens, no password and no session.
"""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction

from portal.accounts.errors import InvalidValue, NotAllowed
from portal.accounts.models import ApiToken, Membership, Scope, Team, User
from portal.accounts.people import TAKEN, require_admin
from portal.accounts.selectors import manages
from portal.accounts.services import audit, create_bound_token, rotate_token
from portal.accounts.teams import require_lead
from portal.accounts.token_bounds import Bounds


def create_service_account(*, username: str, team: Team | None, actor: User, now: datetime) -> User:
    """Create an account for programs, which is a member of its team.

    team: whose leads run it; None: administrators alone. Raises InvalidValue for a name that is taken,
    NotAllowed.
    """
    if team is None:
        require_admin(actor)
    else:
        require_lead(actor, team)
    if User.objects.filter(username__iexact=username).exists():
        raise InvalidValue("username", TAKEN)
    try:
        with transaction.atomic():
            account = User(username=username, is_service=True, service_team=team)
            account.set_unusable_password()
            account.save()
            if team is not None:
                Membership.objects.create(team=team, user=account)
            data = {"team": team.name} if team is not None else {}
            audit(
                action="service account created", actor=actor, target=f"user {username}", data=data, now=now
            )
    except IntegrityError as taken:
        raise InvalidValue("username", TAKEN) from taken
    return account


def create_service_token(
    *,
    account: User,
    name: str,
    bounds: Bounds,
    actor: User,
    now: datetime,
    through: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token of a service account; its text is shown only now.

    Raises InvalidValue, also for a person: they make their own. NotAllowed for who does not run the account,
    and for a token that may administer the portal where its maker may not.
    """
    _require_right(account, bounds.scope, actor)
    return create_bound_token(owner=account, name=name, bounds=bounds, now=now, actor=actor, through=through)


def rotate_service_token(
    *, token: ApiToken, actor: User, now: datetime, through: ApiToken | None = None
) -> tuple[ApiToken, str]:
    """`rotate_token` for a token of a service account.

    Raises as that and `create_service_token` do.
    """
    _require_right(token.owner, Scope(token.scope), actor)
    return rotate_token(token=token, actor=actor, now=now, through=through)


def _require_right(account: User, scope: Scope, actor: User) -> None:
    """May the actor get a token of this scope for this account?"""
    if not account.is_service:
        raise InvalidValue("user", "People make their own tokens; make a service account for a program.")
    if not manages(actor, account):
        raise NotAllowed("Only administrators and the leads of its team run a service account.")
    if scope is Scope.ADMIN and not actor.is_admin:
        raise NotAllowed("Only administrators make tokens of the scope admin.")
