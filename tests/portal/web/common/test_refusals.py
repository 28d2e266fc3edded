"""Refusals on pages: not found, not allowed, or a sentence on the page that comes next."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.contrib.messages.middleware import MessageMiddleware
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.test import RequestFactory

from knowledge.predictors.model_registry import CannotPromote, NoSuchPredictor
from portal.accounts.errors import Changed, NotAllowed
from portal.web.common.refusals import or_404, refusals_shown
from scheduler.errors import Conflict, NotFound


@pytest.fixture
def request_() -> Any:
    request: Any = RequestFactory().post("/")
    request.session = {}
    MessageMiddleware(HttpResponse).process_request(request)
    return request


@pytest.mark.parametrize("refusal", [Conflict("In use."), Changed("In use."), CannotPromote("In use.")])
def test_the_next_page_says_why(request_: Any, refusal: Exception) -> None:
    with refusals_shown(request_):
        raise refusal
    assert [str(message) for message in get_messages(request_)] == ["In use."]


@pytest.mark.parametrize(
    ("refusal", "answer"),
    [
        (NotFound("No job."), Http404),
        (NoSuchPredictor("No version."), Http404),
        (NotAllowed("Not yours."), PermissionDenied),
        (KeyError("a fault"), KeyError),
    ],
)
def test_what_is_missing_forbidden_or_broken_is_said_by_its_own_page(
    request_: Any, refusal: Exception, answer: type[Exception]
) -> None:
    with pytest.raises(answer), refusals_shown(request_):
        raise refusal
    assert list(get_messages(request_)) == []


def test_what_a_selector_does_not_find_is_a_404() -> None:
    def find(name: str) -> str:
        raise NotFound(name)

    with pytest.raises(Http404):
        or_404(find, "a")
    assert or_404(str.upper, "a") == "A"
