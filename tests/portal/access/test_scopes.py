"""What each scope of a token may do, walked over all routes, methods and scopes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.urls import resolve
from rest_framework.exceptions import PermissionDenied
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from portal.accounts.models import ApiToken, Scope, User
from tests.portal.access.addresses import all_addresses

CHANGING = ("post", "put", "patch", "delete")
# Questions: they change nothing that anybody else sees.
READ = {
    f"POST /api/{address}/"
    for address in (
        "recommendations", "recommendations/check", "recommendations/plans", "recommendations/start",
        "intents", "logs",
    )
} | {"POST /v1/fine_tuning/estimates"}  # fmt: skip
OWN_TOKEN = re.compile(r"\w+ /api/tokens/tok-\{token\}/")  # where it is done, only a token itself may do it
SUBMIT = re.compile(
    r"\w+ /(api/(jobs|arrays|files|uploads|imports)/|(v1|openai)/.*(files|uploads|fine_tuning))"
)


def operations() -> Iterator[tuple[APIView, str, str]]:
    """A view of each address of programs, and the methods that it knows."""
    for address in all_addresses():
        if not address.startswith(("/api/", "/v1/", "/openai/")):
            continue
        view = resolve(re.sub(r"\{\w+\}", "1", address)).func
        if kind := getattr(view, "cls", None):
            actions = getattr(view, "actions", None)
            for method in ("get", *CHANGING):
                if method not in actions if actions else not hasattr(kind, method):
                    continue
                made = kind(**view.initkwargs)
                made.action_map = actions
                yield made, method, address


def narrowest(view: APIView, method: str, address: str) -> Scope | None:
    """The scope that an administrator's token needs; None: even `admin` is too little."""
    for scope in Scope:
        bare = getattr(APIRequestFactory(), method)(address)
        force_authenticate(bare, User(is_staff=True), ApiToken(scope=scope))
        request = view.initialize_request(bare)
        view.request, view.args, view.kwargs, view.format_kwarg = request, (), {}, None
        if view.action_map:
            view.action = view.action_map.get(method)
        try:
            view.check_permissions(request)
        except PermissionDenied:
            continue
        return scope
    return None


def test_every_operation_needs_the_scope_that_is_written_here() -> None:
    asked, wrong = set(), []
    for view, method, address in operations():
        operation = f"{method.upper()} {address}"
        found = narrowest(view, method, address)
        asked.add(operation)
        if method == "get":
            expected = {Scope.READ, Scope.ADMIN}
        elif operation in READ or OWN_TOKEN.match(operation):
            expected = {Scope.READ}
        elif SUBMIT.match(operation):
            expected = {Scope.SUBMIT, Scope.ADMIN}
        else:
            expected = {Scope.WRITE, Scope.ADMIN}
        if found not in expected:
            wrong.append(f"{operation}: {found} instead of {' or '.join(expected)}")
    assert not wrong, "\n".join(wrong)
    assert asked >= READ
    assert len(asked) > 120


@pytest.mark.parametrize("smaller", list(Scope))
def test_a_scope_includes_those_before_it_and_no_other(smaller: Scope) -> None:
    order = ["read", "submit", "write", "admin"]
    assert [scope.value for scope in Scope] == order
    assert [other for other in Scope if smaller.includes(other)] == order[: order.index(smaller) + 1]
