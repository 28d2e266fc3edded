"""The page that shows the API, and its part of the schema.

Unknown addresses are answered here as well.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import Resolver404, resolve
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request

from portal.api.common.errors import error_body
from portal.api.common.fields import ChoiceField, StrictSerializer
from portal.api.common.views import StrictView

FORMATS = ("json", "yaml")

# Subjects of the reference, with the first parts of their addresses.
SUBJECTS = {
    "Jobs": ("jobs", "arrays", "files", "uploads", "intents", "read-values", "imports"),
    "Recommendations": ("recommendations",),
    "Knowledge": ("models", "gpus", "executions", "executions.csv", "logs", "predictors"),
    "Nodes": ("nodes", "markets", "windows"),
    "Scheduling": ("policy", "simulations"),
    "People": ("me", "tokens", "users", "teams", "service-accounts", "limits", "spending", "audit"),
    "Portal": ("version", "failures", "storage"),
}


def tag_subjects(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put operations under their subjects, in the order of the table.

    This is a hook of drf-spectacular. Raises KeyError for an address without a subject.
    """
    subject_of = {address: subject for subject, addresses in SUBJECTS.items() for address in addresses}
    for path, operations in result["paths"].items():
        address = path.removeprefix("/api/").partition("/")[0]
        for operation in operations.values():
            operation["tags"] = [subject_of[address]]
    result["tags"] = [{"name": subject} for subject in SUBJECTS]
    return result


class SchemaQuery(StrictSerializer):
    format = ChoiceField(choices=FORMATS, required=False)


class ByFormat(DefaultContentNegotiation):
    """`?format=json` comes before what a client accepts."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        asked = request.query_params.get("format")
        return super().select_renderer(request, renderers, asked if asked in FORMATS else None)


class SchemaApi(StrictView, SpectacularAPIView):
    has_fields = False
    query = {"get": SchemaQuery}
    content_negotiation_class = ByFormat


class DocsQuery(StrictSerializer):
    script = serializers.CharField(required=False, allow_blank=True)


class SwaggerApi(StrictView, SpectacularSwaggerSplitView):
    """Swagger UI from installed files.

    Its script has an address of its own, as the CSP requires.
    """

    has_fields = False
    query = {"get": DocsQuery}
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
