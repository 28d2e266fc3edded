"""Reading people. The rules of who sees whom are here and nowhere else."""

from __future__ import annotations

from django.db.models import Count, Q, QuerySet

from portal.accounts.models import ApiToken, AuditEntry, Membership, Role, Team, User
from portal.accounts.public_ids import key_of


def visible_users(user: User) -> QuerySet[User]:
    """Return all people for administrators, and none for others.

    Others meet people in their teams.
    """
    return User.objects.order_by("username") if user.is_admin else User.objects.none()


def people(user: User) -> QuerySet[User]:
    """Those of the visible users who are people, not service accounts."""
    return visible_users(user).filter(is_service=False)


def visible_service_accounts(user: User, *, as_admin: bool = True) -> QuerySet[User]:
    """The accounts for programs that the person runs, by name.

    Administrators run all, leads those of their teams that do not administer the portal. as_admin: may the
    request act as an administrator?
    """
    accounts = User.objects.filter(is_service=True).select_related("service_team").order_by("username")
    everything = user.is_admin and as_admin
    return accounts if everything else accounts.filter(service_team__in=_led_by(user), is_staff=False)


def teams_to_serve(user: User, *, as_admin: bool = True) -> QuerySet[Team]:
    """The teams for which the person may make service accounts."""
    teams = Team.objects.order_by("name")
    return teams if user.is_admin and as_admin else teams.filter(pk__in=_led_by(user))


def _led_by(user: User) -> QuerySet[Membership, int]:
    """Ids of the teams that the person leads, within what their token reaches."""
    led = user.memberships.filter(role=Role.LEAD, team__in=user.team_ids)
    return led.values_list("team", flat=True)


def manages(user: User, account: User) -> bool:
    """Does the person run this service account?"""
    return visible_service_accounts(user).filter(pk=account.pk).exists()


def visible_teams(user: User) -> QuerySet[Team]:
    """Return the person's teams with the number of their members (`size`).

    Administrators see all teams.
    """
    teams = Team.objects.all() if user.is_admin else Team.objects.filter(memberships__user=user)
    if user.bound_team_id is not None:
        teams = teams.filter(pk=user.bound_team_id)
    counted = Team.objects.filter(pk__in=teams.values("pk")).annotate(size=Count("memberships"))
    return counted.order_by("name")


def own_teams(user: User) -> QuerySet[Team]:
    """The teams that the person is a member of: what they submit may belong to one."""
    return user.teams.all() if user.bound_team_id is None else user.teams.filter(pk=user.bound_team_id)


def own_team(user: User, text: str) -> Team | None:
    """The team of the person's that has this id, or else this name."""
    key = key_of(Team, text)
    teams = own_teams(user).filter(Q(name=text) | Q(pk=key))
    return max(teams, key=lambda team: team.pk == key, default=None)


def texts_may_leave(user: User) -> bool:
    """Have all teams of the person agreed to a language model?

    A person without a team has nobody who could.
    """
    return own_teams(user).exists() and not own_teams(user).filter(language_model=False).exists()


def members(team: Team) -> QuerySet[Membership]:
    """Members of the team, leads first."""
    return (
        Membership.objects.filter(team=team).select_related("user", "team").order_by("role", "user__username")
    )


def member_called(team: Team, text: str) -> Membership | None:
    """The member of this id of a person, or else of this name."""
    key = key_of(User, text)
    found = members(team).filter(Q(user__username=text) | Q(user_id=key))
    return max(found, key=lambda member: member.user_id == key, default=None)


def username_called(text: str) -> str:
    """The name of the person of this id; other texts, which may be names, as they are."""
    key = key_of(User, text)
    named = User.objects.filter(pk__in=[] if key is None else [key])
    return named.values_list("username", flat=True).first() or text


def own_tokens(user: User) -> QuerySet[ApiToken]:
    """The person's tokens, newest first.

    A token that is bound to a team sees that team's alone.
    """
    tokens = ApiToken.objects.filter(owner=user).select_related("owner", "team", "followed_by")
    return tokens if user.bound_team_id is None else tokens.filter(team=user.bound_team_id)


def tokens_of(owner: User, *, seen_by: User) -> QuerySet[ApiToken]:
    """Return the owner's tokens if the reader may see them.

    Administrators may see anybody's, since they may have to end them; others see their own, and those of
    service accounts that they run.
    """
    tokens = own_tokens(owner)
    seen = seen_by.is_admin or seen_by == owner or (owner.is_service and manages(seen_by, owner))
    return tokens if seen else tokens.none()


def visible_audit(user: User) -> QuerySet[AuditEntry]:
    """The record for administrators; nothing for others."""
    return AuditEntry.objects.order_by("-pk") if user.is_admin else AuditEntry.objects.none()


def audit_matching(rows: QuerySet[AuditEntry], *, actor: str, action: str, text: str) -> QuerySet[AuditEntry]:
    """The entries that hold all given texts; an empty text is in all of them."""
    if actor:
        rows = rows.filter(Q(actor_name__icontains=actor) | Q(node__icontains=actor))
    if action:
        rows = rows.filter(action__icontains=action)
    return rows.filter(target__icontains=text) if text else rows
