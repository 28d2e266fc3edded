"""Errors as programs read them.

They always have the form `{"error": {"code", "message", "fields"}}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import SuspiciousOperation
from rest_framework import exceptions, serializers
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler

from knowledge.catalogue.hf_config_reading import CannotAdd
from knowledge.core.data.sources.table import BadTable
from knowledge.predictors.model_registry import CannotPromote, NoSuchPredictor
from portal.accounts.errors import Changed, InvalidValue, NotAllowed, TokenEnded, TooBusy
from scheduler.errors import (
    BadFile,
    BadParameters,
    BeyondRight,
    Conflict,
    FileTooLarge,
    IllegalTransition,
    KeyInUse,
    KeyReused,
    NotFound,
    OverQuota,
    PlanOutdated,
    StaleJob,
    StorageFull,
)

RETRY_SOON = {"Retry-After": "1"}

# The most special class first.
ANSWERS: list[tuple[type[Exception], int, str]] = [
    (NotFound, 404, "not_found"),
    (BeyondRight, 403, "permission_denied"),
    (BadParameters, 400, "invalid"),
    (BadFile, 400, "bad_file"),
    (OverQuota, 413, "over_quota"),
    (FileTooLarge, 413, "too_large"),
    (StorageFull, 507, "storage_full"),
    (IllegalTransition, 409, "illegal_state"),
    (StaleJob, 409, "changed_meanwhile"),
    (PlanOutdated, 409, "plan_outdated"),
    (Conflict, 409, "conflict"),
    (KeyReused, 422, "key_reused"),
    (KeyInUse, 409, "key_in_use"),
    (NotAllowed, 403, "permission_denied"),
    (TooBusy, 503, "unavailable"),
    (Changed, 409, "changed_meanwhile"),
    (TokenEnded, 409, "conflict"),
    (InvalidValue, 400, "invalid"),
    (NoSuchPredictor, 404, "not_found"),
    (CannotPromote, 409, "conflict"),
    (CannotAdd, 400, "invalid"),
    (BadTable, 400, "bad_file"),
]


class ErrorLineOut(serializers.Serializer[Any]):
    line = serializers.IntegerField()
    column = serializers.CharField(required=False, help_text="Of a CSV.")
    message = serializers.CharField()


class OutdatedOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    promised = serializers.DictField(child=serializers.FloatField(allow_null=True))
    now = serializers.FloatField(allow_null=True, help_text="Null where no node could run the job.")


class ErrorDetailOut(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="One of those in docs/api.md; more come with time.")
    message = serializers.CharField()
    fields: Any = serializers.DictField(
        child=serializers.CharField(), help_text="What is wrong with each wrong field, by its dotted name."
    )
    lines = ErrorLineOut(many=True, required=False, help_text="Of a file that was refused.")
    state = serializers.CharField(required=False, help_text="Of what refused a verb.")
    difference = OutdatedOut(many=True, required=False, help_text="Of a plan that is outdated.")


class ErrorOut(serializers.Serializer[Any]):
    """The one form of all errors."""

    error = ErrorDetailOut()


def error_body(
    code: str, message: str, fields: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return an error in its one form.

    `fields` maps each wrong field to its error.
    """
    return {"error": {"code": code, "message": message, "fields": dict(fields or {}), **more}}


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Handle an exception for DRF.

    None lets Django answer 500, without a trace to the client.
    """
    for kind, http_status, code in ANSWERS:
        if isinstance(exc, kind):
            headers = RETRY_SOON if isinstance(exc, KeyInUse | TooBusy) else {}
            body = error_body(code, str(exc), _fields(exc), **_details(exc))
            return Response(body, status=http_status, headers=headers)
    if isinstance(exc, SuspiciousOperation):
        exc = exceptions.ParseError("The request cannot be read.")
    response = exception_handler(exc, context)
    if response is not None:
        response.data = _drf_body(exc, response, _remedy(exc, context["view"]))
    return response


def _remedy(exc: Exception, view: Any) -> str:
    """What to do about a refusal of which DRF says what is wrong alone."""
    match exc:
        case exceptions.NotAuthenticated():
            return " Send a token of the page API tokens: `Authorization: Bearer ft-...`."
        case exceptions.MethodNotAllowed():
            return f" Here go {', '.join(view.allowed_methods)}."
        case exceptions.UnsupportedMediaType():
            kinds = dict.fromkeys(parser.media_type for parser in view.get_parsers())
            return f" Send it as {' or '.join(kinds)}."
        case exceptions.NotAcceptable():
            kinds = dict.fromkeys(renderer.media_type for renderer in view.get_renderers())
            return f" Accept {' or '.join(kinds)}."
    return ""


def _fields(exc: Exception) -> Mapping[str, str]:
    if isinstance(exc, InvalidValue):
        return {exc.field: str(exc)}
    fields: Mapping[str, str] = getattr(exc, "fields", {})
    return fields


def _details(exc: Exception) -> dict[str, Any]:
    if isinstance(exc, IllegalTransition):
        return {"state": exc.state}
    if isinstance(exc, PlanOutdated):
        return {"difference": exc.difference}
    if isinstance(exc, BadFile):
        return {"lines": [{"line": line, "message": message} for line, message in exc.lines]}
    if isinstance(exc, BadTable):
        cells = [{"line": line, "column": column, "message": text} for line, column, text in exc.errors]
        return {"lines": cells}
    return {}


def _drf_body(exc: Exception, response: Response, remedy: str) -> dict[str, Any]:
    if isinstance(exc, exceptions.ValidationError):
        fields = flatten(exc.detail)
        message = "; ".join(f"{name}: {text}" if name else text for name, text in fields.items())
        return error_body("not_found" if exc.status_code == 404 else "invalid", message, fields)
    detail = response.data.get("detail", "") if isinstance(response.data, Mapping) else ""
    return error_body(
        getattr(detail, "code", None) or "error", f"{detail}{remedy}", getattr(exc, "fields", None)
    )


def flatten(detail: Any, path: str = "") -> dict[str, str]:
    """Nested details of a validation as one text per dotted field.

    Of a field that is wrong as a whole, such as a list that is too long, its own name is told.
    """
    if isinstance(detail, Mapping):
        parts = [flatten(inner, _dotted(path, str(name))) for name, inner in detail.items()]
        return {name: text for part in parts for name, text in part.items()}
    if isinstance(detail, Sequence) and not isinstance(detail, str):
        if any(isinstance(inner, Mapping) for inner in detail):
            return flatten({str(index): inner for index, inner in enumerate(detail) if inner}, path)
        return {path: " ".join(str(inner) for inner in detail)}
    return {path: str(detail)}


def _dotted(path: str, name: str) -> str:
    if not path:
        return name
    return path if name == api_settings.NON_FIELD_ERRORS_KEY else f"{path}.{name}"
