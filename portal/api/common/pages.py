"""Lists in pieces: `?after=ID&limit=N`.

The answer has `data`, `total`, `has_more` and `next`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import BigIntegerField, Model, QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from portal.api.common.fields import StrictSerializer, WrittenNumber
from scheduler.models.ids import is_id_like

MAX_LIMIT = 100
Row = TypeVar("Row", bound=Model)


class PageQuery(StrictSerializer):
    """The query parameters of every list; lists add their filters."""

    after = serializers.CharField(required=False, max_length=64, help_text="Id of the last row already seen.")
    limit = WrittenNumber(required=False, min_value=1, max_value=MAX_LIMIT, default=20)


def read_query(serializer: type[StrictSerializer], params: Any) -> dict[str, Any]:
    """Return the checked query parameters.

    Raises ValidationError, also for unknown or repeated ones.
    """
    repeated = {name: ["is given twice"] for name, values in params.lists() if len(values) > 1}
    if repeated:
        raise ValidationError(repeated)
    checked = serializer(data=params.dict())
    checked.is_valid(raise_exception=True)
    return dict(checked.validated_data)


def page(
    rows: QuerySet[Row], show: Callable[[Row], Any], *, limit: int, after: str | None = None
) -> dict[str, Any]:
    """Return one piece of `rows`, newest first (ids rise over time).

    show: makes a row's values, best of one serializer for all (`JobBrief().to_representation`): its fields
    take milliseconds to make. The row of the cursor may be gone, or not match the filters any more. Raises
    ValidationError for a cursor that is no id of such rows.
    """
    rows = rows.order_by("-pk")
    total = rows.count()
    if after is not None:
        rows = rows.filter(pk__lt=_key(rows.model, after))
    found = list(rows[: limit + 1])
    shown = found[:limit]
    more = len(found) > limit
    return {
        "data": [show(row) for row in shown],
        "total": total,
        "has_more": more,
        "next": str(shown[-1].pk) if more else None,
    }


def _key(model: type[Model], after: str) -> str | int:
    """The key that a cursor names."""
    example = model._meta.pk.get_default()
    if isinstance(example, str):
        if is_id_like(after, example):
            return after
    elif after.isascii() and after.isdigit() and int(after) <= BigIntegerField.MAX_BIGINT:
        return int(after)
    raise ValidationError({"after": ["is not the id of a row of this list"]})


def page_of(item: type[serializers.Serializer[Any]]) -> Any:
    """The schema of a list of `item`."""
    return inline_serializer(
        name=f"{item.__name__}Page",
        fields={
            "data": item(many=True),
            "total": serializers.IntegerField(help_text="Rows that the filters match."),
            "has_more": serializers.BooleanField(),
            "next": serializers.CharField(allow_null=True),
        },
    )


def list_of(item: type[serializers.Serializer[Any]]) -> Any:
    """The schema of a whole list of `item` that does not come in pages."""
    return inline_serializer(name=f"{item.__name__}List", fields={"data": item(many=True)})
