"""The page that shows the API, and its part of the schema.

Unknown addresses are answered here as well.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import Resolver404, resolve
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.renderers import TemplateHTMLRenderer

from portal.api.common.errors import error_body


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.accounts.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token: `Bearer ft-…`."}


class StrictSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Tells generated clients what `Strict` does with unknown fields."""

    target_class = "portal.api.common.fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "fields"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "fields": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    },
}


# Subjects of the reference, with the first parts of their addresses.
SUBJECTS = {
    "Jobs": ("jobs", "files", "intents", "imports"),
    "Recommendations": ("recommendations",),
    "Knowledge": ("models", "gpus", "executions", "executions.csv", "predictors"),
    "Nodes": ("nodes",),
    "Scheduling": ("policy", "simulations"),
    "People": ("me", "tokens", "users", "teams", "audit"),
}


def add_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the one form of an error to the answers of every operation.

    This is a hook of drf-spectacular.
    """
    result["components"]["schemas"]["Error"] = ERROR
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = {"description": "Any error.", "content": content}
    return result


def tag_subjects(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put operations under their subjects, in the order of the table.

    This is a hook of drf-spectacular.
    """
    subject_of = {address: subject for subject, addresses in SUBJECTS.items() for address in addresses}
    for path, operations in result["paths"].items():
        address = path.removeprefix("/api/").partition("/")[0]
        for operation in operations.values():
            operation["tags"] = [subject_of.get(address, address)]
    result["tags"] = [{"name": subject} for subject in SUBJECTS]
    return result


class SwaggerApi(SpectacularSwaggerSplitView):
    """Swagger UI from installed files.

    Its script has an address of its own, as the CSP requires.
    """

    template_name = "api/docs.html"
    http_method_names = ["get", "head"]  # DRF's own answer to OPTIONS has no template
    renderer_classes = [TemplateHTMLRenderer]


@csrf_exempt
def unknown(request: HttpRequest) -> JsonResponse:
    """404 in JSON for any method; a forgotten slash is named, never redirected."""
    message = f"There is no {request.path}; /api/docs/ lists all addresses."
    try:
        if resolve(request.path + "/").func is not unknown:
            message = f"There is no {request.path}; use {request.path}/ with the slash at its end."
    except Resolver404:
        pass
    return JsonResponse(error_body("not_found", message), status=404)
