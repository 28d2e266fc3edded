"""Sign-in for programs (RFC 8628): a program asks for a code, then for its token.

Requests are forms and errors have OAuth's form, `{"error", "error_description"}`, as its clients expect.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.http import QueryDict
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from oauthlib.oauth2 import OAuth2Error
from oauthlib.oauth2.rfc6749.errors import AccessDeniedError, InvalidRequestError
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.device.grants import ask
from portal.accounts.device.protocol import GRANT_TYPE, device_endpoint, token_endpoint
from portal.accounts.errors import AccountError
from portal.accounts.models import Scope
from portal.api.common.throttles import AnonThrottle
from portal.clock import database_now
from trainer.written import clean_name

LONGEST_NAME = 100
REMEDIES = {  # of errors of which oauthlib tells the code alone
    "invalid_scope": f"scope: must be one of {', '.join(Scope.values)}",
    "invalid_client": "client_id: name the program by 1 to 40 letters, digits and . _ -",
    "invalid_grant": "device_code: is unknown here, another program's, or has been used; ask for a new one",
    "unsupported_grant_type": f"grant_type: must be {GRANT_TYPE}",
    "authorization_pending": "Nobody has answered yet; ask again after the interval.",
    "slow_down": "Too soon; from now on wait 5 seconds longer before each question.",
    "access_denied": "A person has denied it, or may not confirm it any more.",
    "expired_token": "The ten minutes are over; ask for a new code.",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def form_of(request: Request) -> QueryDict:
    """The form in a body; an empty one where there is no body."""
    return request.data if isinstance(request.data, QueryDict) else QueryDict()


class OAuthApi(APIView):
    """For everybody: nobody has signed in there."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    parser_classes = [FormParser]
    throttle_classes = [AnonThrottle]


@extend_schema(exclude=True)
class DeviceAuthorizationApi(OAuthApi):
    def post(self, request: Request) -> Response:
        """A code for a person, and another one to fetch the token with (RFC 8628, 3.1)."""
        page = request.build_absolute_uri(reverse("device"))
        asked = device_endpoint(page).create_device_authorization_response
        try:
            program, name = str(form_of(request).get("client_id", "")), _name(request)
            headers, told, status = asked(request.get_full_path(), "POST", form_of(request).urlencode(), FORM)
        except OAuth2Error as refused:
            return _refusal(refused)
        scopes = told.pop("scope").split()
        ask(
            device_code=told["device_code"],
            user_code=told["user_code"],
            program=program,
            name=name or program,
            scope=max(map(Scope, scopes), key=list(Scope).index),
            address=str(request.META.get("REMOTE_ADDR", "")),
            now=database_now(),
        )
        return Response(told, status, headers=headers)


@extend_schema(exclude=True)
class OAuthTokenApi(OAuthApi):
    def post(self, request: Request) -> Response:
        """The token, once a person has confirmed the program; once alone (RFC 8628, 3.4)."""
        try:
            with transaction.atomic():
                headers, body, status = token_endpoint.create_token_response(
                    request.get_full_path(), "POST", form_of(request).urlencode(), FORM
                )
        except AccountError as refused:  # the person has left the team, or the portal, since
            return _refusal(AccessDeniedError(str(refused)))
        except OAuth2Error as refused:
            return _refusal(refused)
        return Response(_with_remedy(json.loads(body)), status, headers=headers)


def _refusal(refused: OAuth2Error) -> Response:
    told = _with_remedy(dict(refused.twotuples))
    return Response(told, refused.status_code, headers=dict(refused.headers))


def _with_remedy(told: dict[str, Any]) -> dict[str, Any]:
    """What oauthlib answers; an error with what to do about it."""
    remedy = REMEDIES.get(told.get("error", ""))
    return {**told, "error_description": told.get("error_description") or remedy} if remedy else told


def _name(request: Request) -> str:
    """What the program would call the token. Raises OAuth2Error."""
    try:
        name = clean_name(form_of(request).get("name", ""))
    except ValueError as wrong:
        raise InvalidRequestError(f"name: {wrong}") from wrong
    if len(name) > LONGEST_NAME:
        raise InvalidRequestError(f"name: at most {LONGEST_NAME} characters")
    return name
