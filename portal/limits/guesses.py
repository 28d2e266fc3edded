"""Limits on guesses of passwords and tokens, by address.

Only refusals count, since many people share an address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from axes.signals import user_locked_out
from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from portal.accounts.models import User
from portal.accounts.services import audit, audit_refusal
from portal.clock import database_now
from portal.http.error_pages import answer
from portal.limits.counters import count, count_up
from portal.node_package import PACKAGES
from portal.serving.refusals import PROGRAM_PATHS

ENROLMENT = "/agent/v1/enrol"
TEXT = ("throttled", "Too many failed attempts", "Wait a while before the next one from this address.")


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of refusals in a number of seconds. refusal: the status that is one.

    first: looked at before the guess itself. A token is looked up first: that costs no more than counting,
    256 random bits are not guessed, and a good one is served whatever others at its address do.
    """

    name: str
    most: int
    window_s: int
    refusal: int
    first: bool


# Of many names: one name at one address is locked after AXES_FAILURE_LIMIT, and nobody else with it.
SIGN_IN = Limit("sign-in", most=300, window_s=900, refusal=200, first=True)  # the form once more
JOINING = Limit("join", most=20, window_s=300, refusal=401, first=True)
TOKENS = Limit("token", most=60, window_s=60, refusal=401, first=False)


def guess_middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> object:
    """429 for further guesses from an address, sparing hash, query and record."""

    def middleware(request: HttpRequest) -> HttpResponse:
        limit = _limit_of(request)
        if limit is None:
            return get_response(request)
        name = f"guess:{limit.name}:{network_of(str(request.META.get('REMOTE_ADDR', '')))}"
        if limit.first and count(name) >= limit.most:
            return _slow_down(request, limit)
        response = get_response(request)
        if response.status_code == limit.refusal and count_up(name, limit.window_s) > limit.most:
            return _slow_down(request, limit)
        return response

    return middleware


def note_sign_in(*, request: HttpRequest | None, user: User, **_: object) -> None:
    """Add a sign-in to the audit record; not what tests and programs do to a session."""
    if request is not None and _limit_of(request) is SIGN_IN:
        address = str(request.META.get("REMOTE_ADDR", ""))
        audit(action="signed in", actor=user, target=f"user {user}", now=database_now(), address=address)


def note_wrong_password(
    *, credentials: Mapping[str, object], request: HttpRequest | None = None, **_: object
) -> None:
    """Add a failed sign-in to the audit record.

    A name that nobody has is not kept: people type passwords there.
    """
    if request is None or _limit_of(request) is not SIGN_IN or getattr(request, "axes_locked_out", False):
        return
    name = str(credentials.get("username", ""))[:150]
    known = User.objects.filter(username=name).exists()
    address = str(request.META.get("REMOTE_ADDR", ""))
    target = f"user {name}" if known else "an unknown name"
    audit(action="sign-in failed", target=target, now=database_now(), address=address)


def note_lock_out(*, username: str, ip_address: str, **_: object) -> None:
    """Add to the audit record that an address may not try a name for some time.

    Once in a while.
    """
    known = User.objects.filter(username=username).exists()
    data = {"name": username if known else "unknown"}
    audit_refusal(action="sign-in locked", now=database_now(), address=ip_address or "", data=data)


user_logged_in.connect(note_sign_in)
user_login_failed.connect(note_wrong_password)
user_locked_out.connect(note_lock_out)


def _limit_of(request: HttpRequest) -> Limit | None:
    if request.path == ENROLMENT or request.path.startswith(PACKAGES):
        return JOINING
    if request.path.startswith(PROGRAM_PATHS):
        return TOKENS
    signs_in = request.method == "POST" and request.path in (settings.LOGIN_URL, reverse("admin:login"))
    return SIGN_IN if signs_in else None


def network_of(address: str) -> str:
    """The address, of IPv6 the network of 64 bits: one machine has all of them."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))


def _slow_down(request: HttpRequest, limit: Limit) -> HttpResponse:
    response = answer(request, 429, TEXT)
    response["Retry-After"] = str(limit.window_s)
    return response
