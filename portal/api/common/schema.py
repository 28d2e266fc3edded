"""How the API describes itself: parameters, errors and ids, read from the views.

Parts of drf-spectacular, which makes the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent, build_parameter_type
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework.permissions import AllowAny

from portal.accounts.permissions import AdminOnly
from portal.api.common.errors import ErrorOut
from portal.api.common.idempotent import KEY
from portal.api.common.ids import LONGEST_NAME
from portal.api.common.narrow import PARAMETER
from portal.api.common.pages import NoQuery
from portal.api.common.tags import MATCH, NONE_MATCH
from portal.api.common.viewsets import Resource
from trainer.recipes import PARAMS, Param

ERRORS = {
    400: "A field or query parameter is wrong or unknown; `fields` names it.",
    401: "No token, or one that is unknown, expired or revoked.",
    403: "The scope of the token, or the role of its person, is too small.",
    404: "There is no such object, or it is not yours.",
    409: "It is in another state, or someone else changed it; read it again.",
    412: "It is not as it was in the answer whose `ETag` came as `If-Match`; read it again.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "The Idempotency-Key came with another body before.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    503: "The portal is busy or its database is away; `Retry-After`.",
}
WRITES = ("POST", "PUT", "PATCH", "DELETE")
ETAG = {"schema": {"type": "string"}, "description": "Its tag, for `If-None-Match` and `If-Match`."}
CONDITIONS = {
    NONE_MATCH: "The `ETag` of an answer; as long as it holds, this one is 304, without a body.",
    MATCH: "The `ETag` of the answer that the change begins from.",
}


class ApiSchema(AutoSchema):
    """An operation as its view declares it."""

    view: Any
    method: str

    def get_operation(self, *args: Any) -> Any:
        """With the tags of objects, and the conditions that name them."""
        operation = super().get_operation(*args)
        if operation and getattr(self.view, "has_fields", False):
            answers, told = operation["responses"], self._tells_one_object(operation)
            if told and self.method != "POST":
                answers["200"]["headers"] = {"ETag": ETAG}
            if told and self.method == "GET":
                answers["304"] = {"description": "It is as in the answer that `If-None-Match` names."}
                _take(operation, NONE_MATCH)
            elif self._begins_from_match():
                answers["412"] = self._error(ERRORS[412])
                _take(operation, MATCH)
        return operation

    def _tells_one_object(self, operation: Mapping[str, Any]) -> bool:
        """Does an answer of 200 tell one object? Lists have rows in `data`."""
        content = operation["responses"].get("200", {}).get("content", {})
        name = content.get("application/json", {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
        known = self.registry._components.get((name, ResolvedComponent.SCHEMA))
        fields = known.schema.get("properties", {}) if known else {}
        return bool(name) and fields.get("data", {}).get("type") != "array"

    def _begins_from_match(self) -> bool:
        """Changes of what an address names, and verbs of an object that can be read."""
        if self.method != "POST":
            return self.method in WRITES
        is_verb = (
            isinstance(self.view, Resource)
            and f"{{{self.view.lookup_url_kwarg}}}" in self.path.split("/")[-3:]
        )
        return is_verb and hasattr(self.view, "retrieve") and "get" not in self.view.action_map

    def get_operation_id(self) -> str:
        if isinstance(self.view, Resource):
            return f"{self.view.basename}_{self.view.action}"
        return super().get_operation_id()

    def get_description(self) -> str:  # type: ignore[override]  # as drf-spectacular has it
        """What the docstring says, its lines joined to paragraphs."""
        about = self.view.about.get(self.view.action) if isinstance(self.view, Resource) else None
        paragraphs = (about or super().get_description() or "").split("\n\n")
        return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    def get_summary(self) -> str:
        """The first sentence of the description."""
        first = self.get_description().split("\n\n")[0]
        return first.split(". ")[0].rstrip(".")

    def get_request_serializer(self) -> Any:
        if isinstance(self.view, Resource):
            return self.view.takes.get(self.view.action)
        return super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        if isinstance(self.view, Resource) and self.view.action in self.view.tells:
            return self.view.tells[self.view.action]
        return super().get_response_serializers()

    def get_filter_backends(self) -> Any:
        """Filters narrow down the list itself, not what belongs to a row of it."""
        narrowed = not isinstance(self.view, Resource) or self.view.action == "list"
        return super().get_filter_backends() if narrowed else []

    def get_paginated_name(self, serializer_name: str) -> str:
        return f"{serializer_name}Page"

    def _process_override_parameters(self, direction: str = "request") -> Any:
        """Parameters of the view's own tables, beside those of decorators."""
        known = self.get_override_parameters
        more = list(self._declared())
        self.get_override_parameters = lambda: [*more, *known()]  # type: ignore[method-assign]
        try:
            return super()._process_override_parameters(direction)  # type: ignore[no-untyped-call]
        finally:
            del self.get_override_parameters

    def _declared(self) -> Iterator[Any]:
        asked = self.view.action if isinstance(self.view, Resource) else self.method.lower()
        query_class = getattr(self.view, "query_class", lambda _: NoQuery)(asked)
        if query_class is not NoQuery:
            yield query_class
        if self.method == "GET" and getattr(self.view, "has_fields", False):
            yield PARAMETER
        if isinstance(self.view, Resource) and self._is_create_operation():
            yield KEY

    def _resolve_path_parameters(self, variables: list[str]) -> list[Any]:
        """All ids and names in addresses are texts."""
        return [
            build_parameter_type(name=name, location="path", schema={"type": "string"}) for name in variables
        ]

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        answers = super()._get_response_bodies(direction)
        described = {str(status): ERRORS[status] for status in self._errors()} | {"default": "Any error."}
        for status, description in described.items():
            answers.setdefault(status, self._error(description))
        return answers

    def _error(self, description: str) -> dict[str, Any]:
        schema = self.resolve_serializer(ErrorOut, "response").ref
        return {"description": description, "content": {"application/json": {"schema": schema}}}

    def _get_request_for_media_type(self, serializer: Any, direction: Any = "request") -> Any:
        """One of several bodies is needed where each of them is."""
        described: Any = super()._get_request_for_media_type
        schema, is_required = described(serializer, direction)
        if isinstance(serializer, PolymorphicProxySerializer):
            is_required = all(described(one)[1] for one in serializer.serializers)
        return schema, is_required

    def _errors(self) -> Iterator[int]:
        permissions = self.view.get_permissions()
        writes = self.method in WRITES
        yield 400
        if not any(isinstance(one, AllowAny) for one in permissions):
            yield 401
            if writes or any(isinstance(one, AdminOnly) for one in permissions):
                yield 403
        if "{" in self.path:
            yield 404
        if writes:
            yield 409
        if self.method in WRITES[:3]:
            yield from (413, 415)
        if KEY in [*self.get_override_parameters(), *self._declared()]:
            yield 422
        yield from (429, 503)


def _take(operation: dict[str, Any], header: str) -> None:
    """Let an operation take a condition."""
    parameter = build_parameter_type(
        name=header, location="header", schema={"type": "string"}, description=CONDITIONS[header]
    )
    operation.setdefault("parameters", []).append(parameter)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.accounts.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token: `Bearer ft-…`."}


class StrictSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Tells generated clients what `StrictSerializer` does with unknown fields."""

    target_class = "portal.api.common.fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": False}


class JobSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Tells generated clients what is there on request alone."""

    target_class = "portal.api.jobs.resources.job.JobOut"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        always = [name for name in schema["required"] if name not in self.target.on_request]
        return {**schema, "required": always}


class RowSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.api.common.ids.RowField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Any:
        return {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}


class ParamsSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Parameters with their types and bounds, from the tables of the recipes."""

    target_class = "portal.api.jobs.terms.Params"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Any:
        properties = {name: _parameter(param) for name, param in PARAMS.items()}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        component = ResolvedComponent("Params", ResolvedComponent.SCHEMA, schema, "Params")  # type: ignore[no-untyped-call]
        auto_schema.registry.register_on_missing(component)
        return component.ref


def _parameter(param: Param) -> dict[str, Any]:
    """One parameter; null leaves it open."""
    types = {bool: "boolean", int: "integer", float: "number", str: "string"}
    schema: dict[str, Any] = {"type": [types[param.kind], "null"], "description": param.help}
    if param.choices:
        schema["enum"] = [*param.choices, None]
    bounds = {"minimum": param.low, "maximum": param.high, "x-unit": param.unit or None}
    return schema | {name: value for name, value in bounds.items() if value is not None}


class IdSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    target_class = "portal.api.common.ids.IdField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> Any:
        return {"type": "string"}
