"""Errors in OpenAI's form, with the statuses that its clients know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import APIException
from rest_framework.response import Response

from portal.api.common import errors as api_errors
from portal.serving.program_errors import headers_at, openai_error, status_at


class Refused(APIException):
    """A request that the contract refuses, with the remedy.

    param: the field that is wrong.
    """

    def __init__(self, message: str, *, param: str | None, code: str, status: int = 400) -> None:
        super().__init__(message, code)
        self.param, self.named, self.status_code = param, code, status


class NotHere(Refused):
    """An object that does not exist, or is not the asker's."""

    def __init__(self, message: str, *, param: str | None = None, code: str = "not_found") -> None:
        super().__init__(message, param=param, code=code, status=404)


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Handle an exception for DRF: the REST API's answer, in the other form.

    None lets Django answer 500, without a trace to the client.
    """
    if isinstance(exc, Refused):
        return Response(openai_error(exc.status_code, exc.named, str(exc.detail), exc.param), exc.status_code)
    response = api_errors.handle(exc, context)
    if response is None:
        return None
    path = context["request"].path
    error: Mapping[str, Any] = response.data["error"]
    fields: Mapping[str, str] = error["fields"]
    code = error["code"]
    response.status_code = status_at(path, response.status_code, code)
    missing = code == "invalid" and any("is required" in text for text in fields.values())
    response.data = openai_error(
        response.status_code,
        "missing_required_parameter" if missing else code,
        error["message"],
        next(iter(fields), None),
    )
    for name, value in headers_at(path, code).items():
        response[name] = value
    return response
