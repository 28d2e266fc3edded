"""The signed-in person's password and API tokens: made, shown once, revoked."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import PasswordChangeView
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.errors import InvalidValue
from portal.accounts.models import User
from portal.accounts.people import note_own_password
from portal.accounts.requests import PageRequest
from portal.accounts.selectors import own_tokens, teams_to_serve
from portal.accounts.services import create_bound_token, revoke_token, rotate_token
from portal.clock import database_now
from portal.web.common.refusals import refusals_shown
from portal.web.people.client import client_address
from portal.web.people.forms import OwnPasswordForm
from portal.web.people.token_forms import TokenForm
from scheduler.services.lockouts import revoke_all

PAGE = 25


class OwnPassword(PasswordChangeView):
    """The page where people change their own password.

    All other sessions end with the password, and so do the tokens unless the person says otherwise.
    """

    template_name = "people/change_password.html"
    form_class = OwnPasswordForm
    success_url = "/"

    def form_valid(self, form: Any) -> HttpResponse:
        user, now = cast(User, self.request.user), database_now()
        with transaction.atomic():
            answer = super().form_valid(form)
            note_own_password(user=user, now=now)
            if form.cleaned_data["revoke_tokens"]:
                revoke_all(user=user, actor=user, now=now)
        return answer


@login_required
@require_http_methods(["GET", "POST"])
def token_list(request: PageRequest) -> HttpResponse:
    form = TokenForm(request.POST or None, owner=request.user)
    if request.method == "POST" and form.is_valid():
        now = database_now()
        try:
            token, plain = create_bound_token(
                owner=request.user, name=form.cleaned_data["name"], bounds=form.bounds(now), now=now
            )
        except InvalidValue as refused:
            form.take({refused.field: str(refused)})
        else:
            return render(request, "people/token.html", {"token": token, "plain": plain}, status=201)
    page = Paginator(own_tokens(request.user), PAGE).get_page(request.GET.get("page"))
    serves = request.user.is_admin or teams_to_serve(request.user).exists()
    portal = request.build_absolute_uri("/").rstrip("/")
    lines = {"client": client_address(request), "portal": portal}
    context = {"page": page, "form": form, "now": database_now(), "serves": serves, **lines}
    return render(request, "people/tokens.html", context, status=400 if form.is_bound else 200)


@login_required
@require_POST
def token_revoke(request: PageRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(own_tokens(request.user), pk=token_id)
    revoke_token(token=token, actor=request.user, now=database_now())
    return redirect("tokens")


@login_required
@require_POST
def token_rotate(request: PageRequest, token_id: int) -> HttpResponse:
    """Put a new token in this one's place, which goes on for a day."""
    token = get_object_or_404(own_tokens(request.user), pk=token_id)
    with refusals_shown(request):
        made, plain = rotate_token(token=token, actor=request.user, now=database_now())
        return render(request, "people/token.html", {"token": made, "plain": plain})
    return redirect("tokens")
