"""What the client knows of answers and requests is what the OpenAPI document says."""

from __future__ import annotations

import dataclasses
import types
import typing
from datetime import datetime
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from client.foretune import _models
from client.foretune._job_file import JOB_FIELDS
from client.foretune._models import Model

Schema = dict[str, Any]
COMPONENTS: dict[type[Model], str] = {
    _models.JobFields: "JobOut",
    _models.File: "FileOut",
    _models.Artifact: "ArtifactOut",
    _models.Explanation: "ExplanationOut",
    _models.Me: "MeOut",
    _models.Plan: "RecommendationOut",
}
OF_REQUESTS = {"fields"}  # what was asked, which no answer tells
JSON_TYPES = {str: "string", int: "integer", bool: "boolean", float: "number"}


@pytest.fixture(scope="module")
def components() -> dict[str, Any]:
    return dict(SchemaGenerator().get_schema(public=True)["components"]["schemas"])


@pytest.mark.parametrize("model", COMPONENTS, ids=lambda model: model.__name__)
def test_fields_are_those_of_the_document(model: type[Model], components: dict[str, Any]) -> None:
    assert list(complaints(model, components[COMPONENTS[model]], components)) == []


def complaints(
    model: type[Model], component: dict[str, Any], components: dict[str, Any]
) -> typing.Iterator[str]:
    hints = typing.get_type_hints(model)
    for field in dataclasses.fields(model):
        told = field.metadata.get("json", field.name)
        if told == "raw" or told in OF_REQUESTS:
            continue
        if told not in component["properties"]:
            yield f"{model.__name__}.{told} is not told"
        else:
            yield from fits(
                f"{model.__name__}.{told}", hints[field.name], component["properties"][told], components
            )


def fits(name: str, hint: Any, schema: Schema, components: Schema) -> typing.Iterator[str]:
    """Complaints where a value of the schema is none of the type."""
    schema, nullable = resolved(schema, components)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (one for one in typing.get_args(hint) if one is not types.NoneType)
    elif nullable and hint is not Any:
        yield f"{name} may be null"
    if hint is Any or not schema:
        return
    kind = schema.get("type", "object" if "properties" in schema else None)
    if typing.get_origin(hint) is tuple:
        if kind != "array":
            yield f"{name} is no array"
        else:
            yield from fits(f"{name}[]", typing.get_args(hint)[0], schema["items"], components)
    elif typing.get_origin(hint) is dict:
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            yield from fits(f"{name}{{}}", typing.get_args(hint)[1], values, components)
    elif isinstance(hint, type) and issubclass(hint, Model):
        yield from complaints(hint, schema, components)
    elif hint is datetime:
        if schema.get("format") != "date-time":
            yield f"{name} is no moment"
    elif kind not in (None, JSON_TYPES[hint]):
        yield f"{name} is of the type {kind}"


def resolved(schema: Schema, components: Schema) -> tuple[Schema, bool]:
    """The schema itself behind references, and whether it may be null (OpenAPI 3.0 and 3.1)."""
    nullable = bool(schema.get("nullable"))
    kind = schema.get("type")
    if isinstance(kind, list):
        nullable |= "null" in kind
        schema = {**schema, "type": next(one for one in kind if one != "null")}
    for word in ("allOf", "oneOf", "anyOf"):
        if word in schema:
            parts = [resolved(one, components) for one in schema[word]]
            nullable |= any(one.get("type") == "null" or of_null for one, of_null in parts)
            parts = [
                part for part in parts if part[0].get("type") != "null" and part[0].get("enum") != [None]
            ]
            return (parts[0][0] if parts else {}), nullable
    if "$ref" in schema:
        found, of_reference = resolved(components[schema["$ref"].rpartition("/")[2]], components)
        return found, nullable or of_reference
    return schema, nullable


def test_fields_of_a_job_file_are_those_of_a_submission(components: dict[str, Any]) -> None:
    asked = components["JobInRequest"]["properties"]
    assert set(JOB_FIELDS) <= set(asked)
    assert set(asked) - set(JOB_FIELDS) <= {"reading", "plan"}, (
        "new terms belong into JOB_FIELDS and TEMPLATE"
    )
