"""Teams: everyone sees their own; leads and administrators run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.accounts.errors import InvalidValue, NotAllowed
from portal.accounts.models import Membership, Role, Team
from portal.accounts.requests import PageRequest
from portal.accounts.selectors import members, visible_teams
from portal.accounts.teams import (
    add_member,
    allow_language_model,
    change_role,
    create_team,
    may_manage,
    remove_member,
    rename_team,
)
from portal.clock import database_now
from portal.web.common.refusals import refusals_shown
from portal.web.people.forms import LanguageModelForm, MemberForm, NameSearch, RoleForm, TeamForm
from portal.web.people.limits import QuotaForm, QuotaModelForm, end_team_quota, quota_parts, set_team_quota
from portal.web.people.shares import ShareForm, set_team_weight, share_parts
from scheduler.errors import BadParameters
from scheduler.services.deletions import delete_team

PAGE = 25


def _team(request: PageRequest, team_id: int) -> Team:
    return get_object_or_404(visible_teams(request.user), pk=team_id)


@login_required
@require_http_methods(["GET", "POST"])
def team_list(request: PageRequest) -> HttpResponse:
    """My teams, or all of them, with a form for administrators that makes one more."""
    form = TeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = create_team(name=form.cleaned_data["name"], actor=request.user, now=database_now())
            return redirect("team", made.pk)
        except NotAllowed as refused:
            raise PermissionDenied from refused
        except InvalidValue as refused:
            form.add_error(refused.field, str(refused))
    search = NameSearch(request.GET)
    teams = visible_teams(request.user).filter(name__icontains=search.text)
    page = Paginator(teams, PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "search": search, "form": form}
    wrong = form.is_bound or not search.is_valid()
    return render(request, "people/teams.html", context, status=400 if wrong else 200)


@login_required
@require_GET
def team_detail(request: PageRequest, team_id: int) -> HttpResponse:
    return render(request, "people/team.html", _page(request, _team(request, team_id)))


def _page(request: PageRequest, team: Team) -> dict[str, Any]:
    now = database_now()
    return {
        "team": team,
        "page": Paginator(members(team), PAGE).get_page(request.GET.get("page")),
        "manages": may_manage(request.user, team),
        "roles": list(Role),
        **quota_parts(team, now),
        **share_parts(team, now),
        "member_form": MemberForm(),
        "language_hosts": sorted({one.host for one in settings.LANGUAGE_SERVERS.values() if one}),
        "name_form": TeamForm(initial={"name": team.name, "seen": team.name}),
    }


@login_required
@require_POST
def team_verb(request: PageRequest, team_id: int, verb: str) -> HttpResponse:
    """Add a member, rename or delete the team; then show it again.

    If it fails, the page shows the errors.
    """
    team = _team(request, team_id)
    if verb not in VERBS:
        raise Http404
    kind, act, place = VERBS[verb]
    form = kind(request.POST)
    if form.is_valid():
        with refusals_shown(request):
            try:
                act(team=team, actor=request.user, now=database_now(), **form.cleaned_data)
                return redirect("teams") if verb == "delete" else redirect("team", team_id)
            except InvalidValue as refused:
                form.add_error(refused.field, str(refused))
            except BadParameters as refused:
                form.take(refused.fields)
    if form.errors:
        return render(request, "people/team.html", {**_page(request, team), place: form}, status=400)
    return redirect("team", team_id)


def _delete(*, team: Team, actor: Any, now: Any, **_: Any) -> None:
    if not actor.is_admin:
        raise NotAllowed("Only administrators delete teams.")
    delete_team(team=team, actor=actor, now=now)


VERBS: dict[str, tuple[Any, Callable[..., object], str]] = {
    "add": (MemberForm, add_member, "member_form"),
    "rename": (TeamForm, rename_team, "name_form"),
    "language-model": (LanguageModelForm, allow_language_model, "language_form"),
    "delete": (TeamForm, _delete, "name_form"),
    "quota": (QuotaForm, set_team_quota, "quota_form"),
    "end-quota": (QuotaModelForm, end_team_quota, "quota_form"),
    "share": (ShareForm, set_team_weight, "share_form"),
}


@login_required
@require_POST
def member_verb(request: PageRequest, team_id: int, member_id: int, verb: str) -> HttpResponse:
    """Change a member's role, or remove them."""
    team = _team(request, team_id)
    member = get_object_or_404(members(team), pk=member_id)
    if verb not in ("role", "remove"):
        raise Http404
    with refusals_shown(request):
        _change_member(request, member, verb)
    # A person who left the team does not see it any more.
    stays = visible_teams(request.user).filter(pk=team_id).exists()
    return redirect("team", team_id) if stays else redirect("teams")


def _change_member(request: PageRequest, member: Membership, verb: str) -> None:
    given: dict[str, Any] = {"membership": member, "actor": request.user, "now": database_now()}
    if verb == "remove":
        remove_member(**given)
        return
    form = RoleForm(request.POST)
    if form.is_valid():
        change_role(role=Role(form.cleaned_data["role"]), seen=Role(form.cleaned_data["seen"]), **given)
    else:
        messages.warning(request, "There is no such role; choose member or lead.")
