"""Users, for administrators: the list, one person, and what may be done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from portal.accounts.errors import InvalidValue
from portal.accounts.models import User
from portal.accounts.people import change_user, create_user, let_in
from portal.accounts.requests import PageRequest
from portal.accounts.selectors import own_tokens, people, tokens_of, visible_teams, visible_users
from portal.accounts.services import revoke_token
from portal.clock import database_now
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.refusals import refusals_shown
from portal.web.people.forms import ChangeUserForm, LockOutForm, NameSearch, NewPasswordForm, NewUserForm
from portal.web.people.limits import LimitForm, limit_parts, save_limit
from portal.web.people.shares import ShareForm, share_parts
from scheduler.selectors.jobs import visible_jobs
from scheduler.services.fair_shares import set_weight
from scheduler.services.lockouts import lock_out, reset_password, revoke_all
from scheduler.states import TERMINAL

PAGE, SHOWN_TEAMS, SHOWN_TOKENS = 25, 50, 50


@login_required
@require_http_methods(["GET", "POST"])
def user_list(request: PageRequest) -> HttpResponse:
    """Everyone, and a form that makes one more; their password is shown once."""
    refuse_others_than_admins(request)
    form, password = NewUserForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        try:
            made, password = create_user(
                actor=request.user,
                username=form.cleaned_data["username"],
                profile=form.profile,
                now=database_now(),
            )
        except InvalidValue as refused:
            form.add_error(refused.field, str(refused))
        else:
            context = {"person": made, "password": password}
            return render(request, "people/password.html", context, status=201)
    search = NameSearch(request.GET)
    found = people(request.user).filter(username__icontains=search.text)
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    context = {"form": form, "search": search, "page": page}
    wrong = form.is_bound or not search.is_valid()
    return render(request, "people/users.html", context, status=400 if wrong else 200)


def _person(request: PageRequest, user_id: int) -> User:
    refuse_others_than_admins(request)
    return get_object_or_404(visible_users(request.user), pk=user_id)


@login_required
@require_GET
def user_detail(request: PageRequest, user_id: int) -> HttpResponse:
    person = _person(request, user_id)
    return render(request, "people/user.html", _page(person, _form_of(person)))


def _form_of(person: User) -> ChangeUserForm:
    now = {"email": person.email, "is_staff": person.is_staff}
    return ChangeUserForm(initial={**now, **{f"seen_{name}": value for name, value in now.items()}})


def _page(
    person: User,
    form: ChangeUserForm,
    lock_out: LockOutForm | None = None,
    limit_form: LimitForm | None = None,
    share_form: ShareForm | None = None,
) -> dict[str, Any]:
    teams = visible_teams(person)[:SHOWN_TEAMS] if not person.is_admin else ()
    tokens = own_tokens(person).filter(revoked_at__isnull=True)
    jobs = visible_jobs(person).filter(owner=person).exclude(state__in=TERMINAL).count()
    return {
        "person": person, "form": form, "lock_out": lock_out or LockOutForm(),
        **limit_parts(person, limit_form), **share_parts(person, database_now(), share_form),
        "password_form": NewPasswordForm(), "teams": teams, "tokens": tokens[:SHOWN_TOKENS], "jobs": jobs,
    }  # fmt: skip


@login_required
@require_POST
def user_change(request: PageRequest, user_id: int) -> HttpResponse:
    person, form = _person(request, user_id), ChangeUserForm(request.POST)
    if not form.is_valid():
        return render(request, "people/user.html", _page(person, form), status=400)
    with refusals_shown(request):
        change_user(user=person, profile=form.profile, seen=form.seen, actor=request.user, now=database_now())
    return redirect("user", user_id)


@login_required
@require_POST
def user_verb(request: PageRequest, user_id: int, verb: str) -> HttpResponse:
    """Shut out, let in, end all tokens, or make a new password."""
    person = _person(request, user_id)
    if verb not in VERBS:
        raise Http404
    answer = None
    with refusals_shown(request):
        answer = VERBS[verb](request, person)
    return answer or redirect("user", user_id)


def _lock_out(request: PageRequest, person: User) -> HttpResponse | None:
    form = LockOutForm(request.POST)
    name = form.cleaned_data["hand_over_to"] if form.is_valid() else ""
    successor = people(request.user).filter(username=name).first() if name else None
    if name and successor is None:
        form.add_error("hand_over_to", "There is no user with this name.")
    if form.is_valid():
        try:
            lock_out(user=person, actor=request.user, now=database_now(), successor=successor)
            return None
        except InvalidValue as refused:
            if refused.field not in form.fields:
                raise
            form.take({refused.field: str(refused)})
    return render(request, "people/user.html", _page(person, _form_of(person), form), status=400)


def _let_in(request: PageRequest, person: User) -> None:
    let_in(user=person, actor=request.user, now=database_now())


def _revoke_all(request: PageRequest, person: User) -> None:
    revoke_all(user=person, actor=request.user, now=database_now())


def _new_password(request: PageRequest, person: User) -> HttpResponse:
    form = NewPasswordForm(request.POST)
    revoke = not form.is_valid() or form.cleaned_data["revoke_tokens"]
    password = reset_password(user=person, actor=request.user, now=database_now(), revoke=revoke)
    return render(request, "people/password.html", {"person": person, "password": password})


def _limit(request: PageRequest, person: User) -> HttpResponse | None:
    form = save_limit(request, person)
    if form is None:
        return None
    return render(request, "people/user.html", _page(person, _form_of(person), limit_form=form), status=400)


def _share(request: PageRequest, person: User) -> HttpResponse | None:
    form = ShareForm(request.POST)
    if form.is_valid():
        set_weight(of=person, actor=request.user, now=database_now(), **form.cleaned_data)
        return None
    return render(request, "people/user.html", _page(person, _form_of(person), share_form=form), status=400)


VERBS: dict[str, Callable[[PageRequest, User], HttpResponse | None]] = {
    "deactivate": _lock_out, "activate": _let_in, "revoke": _revoke_all, "password": _new_password,
    "limit": _limit, "share": _share,
}  # fmt: skip


@login_required
@require_POST
def user_token_revoke(request: PageRequest, user_id: int, token_id: int) -> HttpResponse:
    """End one token of a person."""
    token = get_object_or_404(tokens_of(_person(request, user_id), seen_by=request.user), pk=token_id)
    revoke_token(token=token, actor=request.user, now=database_now())
    return redirect("user", user_id)
