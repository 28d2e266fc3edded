"""Users, for administrators: the list, one person, and what may be done with them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.accounts.errors import AccountError, Refused
from portal.accounts.models import User
from portal.accounts.people import change_user, create_user, reset_password, set_active
from portal.accounts.requests import PageRequest
from portal.accounts.selectors import visible_teams, visible_users
from portal.clock import database_now
from portal.web.nodes import require_admin
from portal.web.people_forms import ChangeUserForm, NameSearch, NewUserForm
from scheduler.errors import Conflict
from scheduler.services.removals import deactivate_user

PAGE, SHOWN_TEAMS = 25, 50


@login_required
@require_http_methods(["GET", "POST"])
def user_list(request: PageRequest) -> HttpResponse:
    """Everyone, and a form that makes one more; their password is shown once."""
    require_admin(request)
    form, password = NewUserForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        try:
            made, password = create_user(
                actor=request.user,
                username=form.cleaned_data["username"],
                profile=form.profile,
                now=database_now(),
            )
        except Refused as refused:
            form.add_error(refused.field, str(refused))
        else:
            context = {"person": made, "password": password}
            return render(request, "people/password.html", context, status=201)
    search = NameSearch(request.GET)
    people = visible_users(request.user).filter(username__icontains=search.text)
    page = Paginator(people, PAGE).get_page(request.GET.get("page"))
    context = {"form": form, "search": search, "page": page}
    wrong = form.is_bound or not search.is_valid()
    return render(request, "people/users.html", context, status=400 if wrong else 200)


def _person(request: PageRequest, user_id: int) -> User:
    require_admin(request)
    found = visible_users(request.user).filter(pk=user_id).first()
    if found is None:
        raise Http404
    return found


@login_required
@require_GET
def user_detail(request: PageRequest, user_id: int) -> HttpResponse:
    person = _person(request, user_id)
    return render(request, "people/user.html", _page(person, _form_of(person)))


def _form_of(person: User) -> ChangeUserForm:
    now = {"email": person.email, "is_staff": person.is_staff}
    return ChangeUserForm(initial={**now, **{f"seen_{name}": value for name, value in now.items()}})


def _page(person: User, form: ChangeUserForm) -> dict[str, Any]:
    teams = visible_teams(person)[:SHOWN_TEAMS] if not person.is_admin else ()
    return {"person": person, "form": form, "teams": teams}


@login_required
@require_POST
def user_change(request: PageRequest, user_id: int) -> HttpResponse:
    person, form = _person(request, user_id), ChangeUserForm(request.POST)
    if not form.is_valid():
        return render(request, "people/user.html", _page(person, form), status=400)
    try:
        change_user(user=person, profile=form.profile, seen=form.seen, actor=request.user, now=database_now())
    except AccountError as refused:
        messages.warning(request, str(refused))
    return redirect("user", user_id)


@login_required
@require_POST
def user_verb(request: PageRequest, user_id: int, verb: str) -> HttpResponse:
    """Lock out, let in, or make a new password."""
    person, now = _person(request, user_id), database_now()
    try:
        if verb == "deactivate":
            deactivate_user(user=person, actor=request.user, now=now)
        elif verb == "activate":
            set_active(user=person, active=True, actor=request.user, now=now)
        elif verb == "password":
            context = {"person": person, "password": reset_password(user=person, actor=request.user, now=now)}
            return render(request, "people/password.html", context)
        else:
            raise Http404
    except (AccountError, Conflict) as refused:
        messages.warning(request, str(refused))
    return redirect("user", user_id)
