"""The page where a person confirms a program (RFC 8628, 3.3)."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from portal.accounts.device.grants import LIVES, confirm, deny, open_grant, shown
from portal.accounts.errors import AccountError, InvalidValue
from portal.accounts.models import DeviceGrant
from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.limits.counters import count, count_up
from portal.web.people.token_forms import CodeForm, ConfirmForm

MOST_WRONG = 5  # codes of one person, within the life of a code
TOO_MANY = "Too many wrong codes. Wait ten minutes, then ask the program for a new one."
UNKNOWN = "No program is waiting with this code. Codes work once, for ten minutes; ask for a new one."


@login_required
@require_http_methods(["GET", "POST"])
def device(request: PageRequest) -> HttpResponse:
    """Asks for the code, then shows who asks for what; the person confirms or denies."""
    given = request.POST if request.method == "POST" else request.GET
    if "code" not in given:
        return render(request, "people/device.html", {"code_form": CodeForm()})
    code_form = CodeForm(given)
    grant = _grant(request, code_form)
    if grant is None:
        return render(request, "people/device.html", {"code_form": code_form}, status=400)
    if request.method == "GET" or "answer" not in request.POST:
        return _shown(request, grant, _form_of(request, grant))
    return _answered(request, grant)


def _grant(request: PageRequest, form: CodeForm) -> DeviceGrant | None:
    """The open question with the code; else the form says what is wrong with it."""
    if not form.is_valid():
        return None
    wrong_codes = f"device-codes:{request.user.pk}"
    if count(wrong_codes) >= MOST_WRONG:
        form.add_error("code", TOO_MANY)
        return None
    grant = open_grant(form.cleaned_data["code"], database_now())
    if grant is None:
        over = count_up(wrong_codes, int(LIVES.total_seconds())) >= MOST_WRONG
        form.add_error("code", TOO_MANY if over else UNKNOWN)
    return grant


def _form_of(request: PageRequest, grant: DeviceGrant) -> ConfirmForm:
    asked = {"code": shown(grant.user_code), "name": grant.name, "scope": grant.scope}
    return ConfirmForm(owner=request.user, initial=asked)


def _answered(request: PageRequest, grant: DeviceGrant) -> HttpResponse:
    now = database_now()
    if request.POST["answer"] == "deny":
        try:
            deny(grant=grant, owner=request.user, now=now)
        except AccountError as refused:
            return _over(request, refused)
        return render(request, "people/device_done.html", {"grant": grant, "denied": True})
    form = ConfirmForm(request.POST, owner=request.user)
    if not form.is_valid():
        return _shown(request, grant, form, status=400)
    name = form.cleaned_data["name"]
    try:
        confirm(grant=grant, owner=request.user, name=name, bounds=form.bounds(now), now=now)
    except InvalidValue as refused:
        form.take({"days" if refused.field == "expires_at" else refused.field: str(refused)})
        return _shown(request, grant, form, status=400)
    except AccountError as refused:
        return _over(request, refused)
    return render(request, "people/device_done.html", {"grant": grant, "name": name})


def _shown(request: PageRequest, grant: DeviceGrant, form: ConfirmForm, status: int = 200) -> HttpResponse:
    context = {"grant": grant, "code": shown(grant.user_code), "form": form}
    return render(request, "people/device_confirm.html", context, status=status)


def _over(request: PageRequest, refused: AccountError) -> HttpResponse:
    form = CodeForm({"code": ""})
    form.add_error(None, str(refused))
    form.errors.pop("code", None)
    return render(request, "people/device.html", {"code_form": form}, status=409)
