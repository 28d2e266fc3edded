"""Teams, created by administrators and run by their leads.

Every act leaves a line in the audit record.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError, transaction

from portal.accounts.errors import Changed, InvalidValue, NotAllowed
from portal.accounts.models import Membership, Role, Team, User
from portal.accounts.people import require_admin
from portal.accounts.services import audit

Data = Mapping[str, object]  # what the record says beside the act


def is_lead(user: User, team: Team) -> bool:
    """Does the person lead this team?"""
    return Membership.objects.filter(team=team, user=user, role=Role.LEAD).exists()


def may_manage(user: User, team: Team) -> bool:
    """Administrators manage every team, leads their own."""
    return user.is_admin or is_lead(user, team)


def require_lead(actor: User, team: Team) -> None:
    """Raises NotAllowed."""
    if not may_manage(actor, team):
        raise NotAllowed("Only the team's leads and administrators may do this.")


def create_team(*, name: str, actor: User, now: datetime) -> Team:
    """Raises InvalidValue for a name that is taken, NotAllowed."""
    require_admin(actor)
    try:
        with transaction.atomic():
            team = Team.objects.create(name=name)
            _note("team created", team, actor, now)
    except IntegrityError as taken:
        raise InvalidValue("name", "A team with this name already exists; choose another name.") from taken
    return team


def rename_team(*, team: Team, name: str, seen: str, actor: User, now: datetime) -> Team:
    """Rename a team whose name the actor saw as `seen`.

    Raises Changed, Refused, NotAllowed.
    """
    require_lead(actor, team)
    try:
        with transaction.atomic():
            if not Team.objects.filter(pk=team.pk, name=seen).update(name=name):
                raise Changed("Someone else has renamed the team. Reload, check, and try again.")
            _note("team renamed", team, actor, now, {"from": seen, "to": name})
    except IntegrityError as taken:
        raise InvalidValue("name", "A team with this name already exists; choose another name.") from taken
    team.refresh_from_db()
    return team


@transaction.atomic
def allow_language_model(*, team: Team, allowed: bool, actor: User, now: datetime) -> Team:
    """Say whether members' texts may be sent to a language model.

    Raises NotAllowed.
    """
    require_lead(actor, team)
    if Team.objects.filter(pk=team.pk, language_model=not allowed).update(language_model=allowed):
        _note("language model allowed" if allowed else "language model forbidden", team, actor, now)
    team.refresh_from_db()
    return team


@transaction.atomic
def add_member(*, team: Team, username: str, role: Role, actor: User, now: datetime) -> Membership:
    """Add a person to a team.

    Raises InvalidValue for a name that nobody has or that is a member's already, NotAllowed.
    """
    require_lead(actor, team)
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise InvalidValue("username", "There is no user with this name.")
    if user.is_service and user.service_team != team and not actor.is_admin:
        raise InvalidValue("username", "This is the service account of another team; make one for yours.")
    membership, made = Membership.objects.get_or_create(team=team, user=user, defaults={"role": role})
    if not made:
        raise InvalidValue("username", "This user is already in the team.")
    _note("member added", team, actor, now, {"user": username, "role": role})
    return membership


@transaction.atomic
def change_role(*, membership: Membership, role: Role, seen: Role, actor: User, now: datetime) -> None:
    """Change a member's role that the actor saw as `seen`. Raises Changed, NotAllowed."""
    require_lead(actor, membership.team)
    if not Membership.objects.filter(pk=membership.pk, role=seen).update(role=role):
        raise Changed("Someone else has changed this member's role. Reload, check, and try again.")
    who = {"user": membership.user.get_username(), "from": seen, "to": role}
    _note("role changed", membership.team, actor, now, who)


@transaction.atomic
def remove_member(*, membership: Membership, actor: User, now: datetime) -> None:
    """Removing someone who is gone already changes nothing. Raises NotAllowed."""
    require_lead(actor, membership.team)
    if Membership.objects.filter(pk=membership.pk).delete()[0]:
        _note("member removed", membership.team, actor, now, {"user": membership.user.get_username()})


def _note(action: str, team: Team, actor: User, now: datetime, data: Data | None = None) -> None:
    audit(
        action=action,
        actor=actor,
        target=f"team {team.pk}",
        data={"name": team.name, **(data or {})},
        now=now,
    )
