"""Errors as programs read them: `{"error": {"code", "message", "fields"}}`, always in this form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import SuspiciousOperation
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from knowledge.core.data.sources.table import BadTable
from knowledge.hf_config_reading import CannotAdd
from knowledge.model_registry import CannotPromote, NoSuchPredictor
from portal.accounts import errors as accounts
from scheduler import errors as scheduler

RETRY_SOON = {"Retry-After": "1"}

# The most special class first.
ANSWERS: list[tuple[type[Exception], int, str]] = [
    (scheduler.NotFound, 404, "not_found"),
    (scheduler.BadParameters, 400, "invalid"),
    (scheduler.BadFile, 400, "bad_file"),
    (scheduler.OverQuota, 413, "over_quota"),
    (scheduler.FileTooLarge, 413, "too_large"),
    (scheduler.StorageFull, 507, "storage_full"),
    (scheduler.IllegalTransition, 409, "illegal_state"),
    (scheduler.StaleJob, 409, "changed_meanwhile"),
    (scheduler.Conflict, 409, "conflict"),
    (scheduler.KeyReused, 422, "key_reused"),
    (scheduler.KeyInUse, 409, "key_in_use"),
    (accounts.NotAllowed, 403, "permission_denied"),
    (accounts.TooBusy, 503, "unavailable"),
    (accounts.Changed, 409, "changed_meanwhile"),
    (accounts.InvalidValue, 400, "invalid"),
    (NoSuchPredictor, 404, "not_found"),
    (CannotPromote, 409, "conflict"),
    (CannotAdd, 400, "invalid"),
    (BadTable, 400, "bad_file"),
]


def error_body(
    code: str, message: str, fields: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """The one form of an error; `fields` maps each wrong field to what is wrong with it."""
    return {"error": {"code": code, "message": message, "fields": dict(fields or {}), **more}}


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler. None lets Django answer 500, without a trace to the client."""
    for kind, http_status, code in ANSWERS:
        if isinstance(exc, kind):
            headers = RETRY_SOON if isinstance(exc, scheduler.KeyInUse | accounts.TooBusy) else {}
            body = error_body(code, str(exc), _fields(exc), **_details(exc))
            return Response(body, status=http_status, headers=headers)
    if isinstance(exc, SuspiciousOperation):
        exc = exceptions.ParseError("The request cannot be read.")
    response = exception_handler(exc, context)
    if response is not None:
        response.data = _drf_body(exc, response)
    return response


def _fields(exc: Exception) -> Mapping[str, str]:
    if isinstance(exc, accounts.InvalidValue):
        return {exc.field: str(exc)}
    fields: Mapping[str, str] = getattr(exc, "fields", {})
    return fields


def _details(exc: Exception) -> dict[str, Any]:
    if isinstance(exc, scheduler.IllegalTransition):
        return {"state": exc.state}
    if isinstance(exc, scheduler.BadFile):
        return {"lines": [{"line": line, "message": message} for line, message in exc.lines]}
    if isinstance(exc, BadTable):
        cells = [{"line": line, "column": column, "message": text} for line, column, text in exc.errors]
        return {"lines": cells}
    return {}


def _drf_body(exc: Exception, response: Response) -> dict[str, Any]:
    if isinstance(exc, exceptions.ValidationError):
        fields = flatten(exc.detail)
        message = "; ".join(f"{name}: {text}" if name else text for name, text in fields.items())
        return error_body("invalid", message, fields)
    detail = response.data.get("detail", "") if isinstance(response.data, Mapping) else ""
    return error_body(getattr(detail, "code", None) or "error", str(detail))


def flatten(detail: Any, path: str = "") -> dict[str, str]:
    """Nested details of a validation as one text per dotted field."""
    if isinstance(detail, Mapping):
        parts = [flatten(inner, f"{path}.{name}" if path else str(name)) for name, inner in detail.items()]
        return {name: text for part in parts for name, text in part.items()}
    if isinstance(detail, Sequence) and not isinstance(detail, str):
        if any(isinstance(inner, Mapping) for inner in detail):
            return flatten({str(index): inner for index, inner in enumerate(detail) if inner}, path)
        return {path: " ".join(str(inner) for inner in detail)}
    return {path: str(detail)}
