"""Requests whose sender is known: what views behind sign-in receive."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.request import Request

from portal.accounts.models import User


class PageRequest(HttpRequest):
    """A request for a page, behind `login_required`."""

    user: User


class ApiRequest(Request):
    """A request to the API that passed `Scoped`."""

    user: User
