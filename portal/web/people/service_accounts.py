"""Service accounts: accounts for programs, for administrators and leads of teams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.errors import InvalidValue
from portal.accounts.models import User
from portal.accounts.people import let_in
from portal.accounts.requests import PageRequest
from portal.accounts.selectors import teams_to_serve, tokens_of, visible_service_accounts
from portal.accounts.service_accounts import (
    create_service_account,
    create_service_token,
    rotate_service_token,
)
from portal.accounts.services import revoke_token
from portal.clock import database_now
from portal.web.common.form_base import NameField, StyledForm
from portal.web.common.refusals import refusals_shown
from portal.web.people.token_forms import TokenForm
from scheduler.services.lockouts import lock_out

PAGE = 25


class AccountForm(StyledForm):
    """A new account; administrators may make one for no team."""

    prefix_id = "account"
    username = NameField(
        max_length=150, label="Name", validators=[UnicodeUsernameValidator()],
        help_text="Stands as the owner of its jobs, e.g. ci-linguists.",
    )  # fmt: skip

    def __init__(self, *args: Any, maker: User, **kwargs: Any) -> None:
        self.maker = maker
        super().__init__(*args, **kwargs)

    def table_fields(self) -> dict[str, forms.Field]:
        """The teams that its maker may choose."""
        admin = self.maker.is_admin
        team = forms.ModelChoiceField(
            teams_to_serve(self.maker), required=not admin, empty_label="no team" if admin else None,
            help_text="It becomes a member, and the team's leads run it.",
        )  # fmt: skip
        return {"team": team}


@login_required
@require_http_methods(["GET", "POST"])
def account_list(request: PageRequest) -> HttpResponse:
    """The accounts that the person runs, and a form that makes one more."""
    if not request.user.is_admin and not teams_to_serve(request.user).exists():
        raise PermissionDenied
    form = AccountForm(request.POST or None, maker=request.user)
    if request.method == "POST" and form.is_valid():
        try:
            made = create_service_account(actor=request.user, now=database_now(), **form.cleaned_data)
            return redirect("service-account", made.pk)
        except InvalidValue as refused:
            form.take({refused.field: str(refused)})
    page = Paginator(visible_service_accounts(request.user), PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "form": form}
    return render(request, "people/service_accounts.html", context, status=400 if form.is_bound else 200)


def _account(request: PageRequest, account_id: int) -> User:
    return get_object_or_404(visible_service_accounts(request.user), pk=account_id)


@login_required
@require_http_methods(["GET", "POST"])
def account_detail(request: PageRequest, account_id: int) -> HttpResponse:
    """An account with its tokens, and a form that makes one more."""
    account = _account(request, account_id)
    form = TokenForm(request.POST or None, owner=account, maker=request.user)
    now = database_now()
    if request.method == "POST" and form.is_valid():
        try:
            token, plain = create_service_token(
                account=account, name=form.cleaned_data["name"], bounds=form.bounds(now),
                actor=request.user, now=now,
            )  # fmt: skip
        except InvalidValue as refused:
            form.take({refused.field: str(refused)})
        else:
            context = {"token": token, "plain": plain, "account": account}
            return render(request, "people/token.html", context, status=201)
    page = Paginator(tokens_of(account, seen_by=request.user), PAGE).get_page(request.GET.get("page"))
    context = {"account": account, "page": page, "form": form, "now": now}
    return render(request, "people/service_account.html", context, status=400 if form.is_bound else 200)


@login_required
@require_POST
def account_verb(request: PageRequest, account_id: int, verb: str) -> HttpResponse:
    """End an account, or let it in again."""
    account = _account(request, account_id)
    if verb not in VERBS:
        raise Http404
    with refusals_shown(request):
        VERBS[verb](user=account, actor=request.user, now=database_now())
    return redirect("service-account", account_id)


VERBS: dict[str, Callable[..., User]] = {"end": lock_out, "activate": let_in}


@login_required
@require_POST
def account_token_verb(request: PageRequest, account_id: int, key_id: int, verb: str) -> HttpResponse:
    """End or rotate one token of an account."""
    account = _account(request, account_id)
    token = get_object_or_404(tokens_of(account, seen_by=request.user), pk=key_id)
    if verb not in TOKEN_VERBS:
        raise Http404
    with refusals_shown(request):
        if verb == "rotate":
            made, plain = rotate_service_token(token=token, actor=request.user, now=database_now())
            return render(request, "people/token.html", {"token": made, "plain": plain, "account": account})
        revoke_token(token=token, actor=request.user, now=database_now())
    return redirect("service-account", account_id)


TOKEN_VERBS = ("revoke", "rotate")
