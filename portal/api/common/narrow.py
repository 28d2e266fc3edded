"""`fields=state,progress`: an answer with the named fields alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError

from trainer.written import strange_names

FIELDS = "fields"
PARAMETER = OpenApiParameter(
    FIELDS, str, description="Names of the fields to tell, by commas, of a list those of its rows; else all."
)


def without_fields(query: QueryDict) -> QueryDict:
    """The other parameters of an address."""
    others = query.copy()
    others.pop(FIELDS, None)
    return others


def narrowed(told: Any, query: QueryDict) -> Any:
    """What an answer tells, with the fields that the address names.

    Raises ValidationError for names that the answer, or the first row of its list, does not have.
    """
    if len(query.getlist(FIELDS)) > 1:
        raise ValidationError({FIELDS: ["is given twice"]})
    names = [name.strip() for name in query.get(FIELDS, "").split(",")]
    if "" in names:
        raise ValidationError({FIELDS: ["names an empty field; name each by commas, or leave it out"]})
    rows = told.get("data") if isinstance(told, Mapping) else None
    if not isinstance(rows, list):
        return _only(told, names)
    return {**told, "data": [_only(row, names) for row in rows]}


def _only(row: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise ValidationError({FIELDS: ["cannot be chosen of this answer; leave it out"]})
    if strange := [name for name in names if name not in row]:
        reasons = strange_names(strange, list(row), "is not a field of this answer")
        raise ValidationError({FIELDS: [f"{name} {why}" for name, why in reasons.items()]})
    return {name: row[name] for name in names}
