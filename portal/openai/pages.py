"""Lists by cursor: `?after=ID&limit=N`, of one table or of several merged by time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from rest_framework import serializers

from portal.api.common.fields import StrictSerializer, WrittenNumber
from portal.openai.errors import Refused

MOST = 1000
Row = TypeVar("Row", bound=Model)


class ListQuery(StrictSerializer):
    after = serializers.CharField(required=False, max_length=200)
    limit = WrittenNumber(required=False, min_value=1, max_value=MOST, default=20)


@dataclass(frozen=True, slots=True)
class Source(Generic[Row]):
    """One table of a list.

    order: the column that sorts its rows, newest last; after it their keys do. key: the key of the row of a
    public id, None for ids of others. show: a row's object. former: rows that a cursor may name although they
    are gone, as when a client deletes what it lists.
    """

    rows: QuerySet[Row]
    order: str
    key: Callable[[str], Any]
    show: Callable[[Row], dict[str, Any]]
    former: QuerySet[Row] | None = None


def listed(
    *sources: Source[Any], after: str | None, limit: int, oldest_first: bool = False
) -> dict[str, Any]:
    """A page of the merged sources, newest first unless said otherwise.

    Raises Refused for a cursor that is no row of the list.
    """
    place = _place(sources, after) if after else None
    found: list[tuple[Any, int, Any, Model]] = []
    for number, source in enumerate(sources):
        rows = source.rows
        if place is not None:
            rows = rows.filter(_beyond(source.order, number, place, oldest_first=oldest_first))
        sign = "" if oldest_first else "-"
        rows = rows.order_by(f"{sign}{source.order}", f"{sign}pk")[: limit + 1]
        found += [(_value(row, source.order), number, row.pk, row) for row in rows]
    found.sort(key=lambda one: one[:3], reverse=not oldest_first)
    data = [sources[number].show(row) for _, number, _, row in found[:limit]]
    return {
        "object": "list",
        "data": data,
        "has_more": len(found) > limit,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }


Place = tuple[Any, int, Any]  # value of the order, number of the source, key


def _place(sources: Sequence[Source[Any]], after: str) -> Place:
    for number, source in enumerate(sources):
        key = source.key(after)
        rows = source.rows if source.former is None else source.former
        row = rows.filter(pk=key).first() if key is not None else None
        if row is not None:
            return _value(row, source.order), number, row.pk
    raise Refused(f"after: {after[:100]} is not the id of a row of this list.", param="after", code="invalid")


def _beyond(order: str, number: int, place: Place, *, oldest_first: bool) -> Q:
    """The rows of one source that come after the place."""
    value, of, key = place
    way = "gt" if oldest_first else "lt"
    beyond = Q(**{f"{order}__{way}": value})
    if number == of:
        return beyond | Q(**{order: value, f"pk__{way}": key})
    comes_after = number > of if oldest_first else number < of
    return beyond | Q(**{order: value}) if comes_after else beyond


def _value(row: Model, order: str) -> Any:
    return getattr(row, order)
