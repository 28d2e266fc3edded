"""`fields=state,progress`: an answer of these fields alone; `include=`: of more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from trainer.written import strange_names

FIELDS = "fields"
EMPTY = "names an empty field; name each by commas, or leave it out"
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
    names = named(query.get(FIELDS, ""))
    if "" in names:
        raise ValidationError({FIELDS: [EMPTY]})
    rows = told.get("data") if isinstance(told, Mapping) else None
    if not isinstance(rows, list):
        return _only(told, names)
    return {**told, "data": [_only(row, names) for row in rows]}


def _only(row: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise ValidationError({FIELDS: ["cannot be chosen of this answer; leave it out"]})
    if strange := _strange(names, list(row), "is not a field of this answer"):
        raise ValidationError({FIELDS: strange})
    return {name: row[name] for name in names}


class IncludeField(serializers.CharField):
    """Names of fields that are told only if they are asked for, by commas."""

    def __init__(self, names: Sequence[str]) -> None:
        help_text = f"Fields that are else left out, by commas: {', '.join(names)}."
        super().__init__(required=False, help_text=help_text)
        self.names = names

    def to_internal_value(self, data: Any) -> Any:
        names = named(super().to_internal_value(data))
        if "" in names:
            raise ValidationError(EMPTY)
        if strange := _strange(names, self.names, "is not left out of this answer"):
            raise ValidationError(strange)
        return frozenset(names)


def named(text: str) -> list[str]:
    """The names that stand in a parameter, by commas."""
    return [name.strip() for name in text.split(",")]


def _strange(names: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    """What is wrong with the names that are not known."""
    reasons = strange_names([name for name in names if name not in known], known, what)
    return [f"{name} {why}" for name, why in reasons.items()]
