"""Lists in pieces: `?after=NEXT&limit=N`, and `order=` where a list has orders.

The answer has `data`, `total`, `has_more` and `next`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from django.core.signing import BadSignature, Signer
from django.db.models import Field, Model, Q, QuerySet
from django.db.models.expressions import F
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.response import Response

from portal.api.common.fields import ChoiceField, StrictSerializer, WrittenNumber, unknown_names
from portal.api.common.ids import key_of, public_id

MAX_LIMIT = 100
NEWEST = "-pk"
LONGEST_CURSOR = 3000  # that of a name of 255 characters of any script
Row = TypeVar("Row", bound=Model)


class NoQuery(StrictSerializer):
    """An address without query parameters."""


class PageQuery(StrictSerializer):
    """The query parameters of every list; lists add their filters."""

    after = serializers.CharField(
        required=False,
        max_length=LONGEST_CURSOR,
        help_text="`next` of the piece before: the last row already seen.",
    )
    limit = WrittenNumber(required=False, min_value=1, max_value=MAX_LIMIT, default=20)


def ordered(orders: Mapping[str, str]) -> type[PageQuery]:
    """The parameters of a list with these orders: words, and the fields of rows."""
    if not orders:
        return PageQuery
    words = [word for name in orders for word in (name, f"-{name}")]
    help_text = "What comes first; `-` descends. Rows without a value come last. Newest first unless given."
    order = ChoiceField(choices=words, required=False, help_text=help_text)
    return type("OrderedPageQuery", (PageQuery,), {"order": order})


def read_query(
    serializer: type[StrictSerializer],
    params: Any,
    *,
    filters: Collection[str] = (),
    lists: Collection[str] = (),
) -> dict[str, Any]:
    """Return the checked query parameters.

    filters: names that a filter set checks. lists: those that may be repeated. Raises ValidationError, also
    for unknown, repeated or empty ones.
    """
    wrong = {
        name: ["is given twice"] for name, values in params.lists() if len(values) > 1 and name not in lists
    }
    wrong |= {name: ["is empty; leave it out"] for name in filters if "" in params.getlist(name)}
    checked = serializer(data={name: value for name, value in params.items() if name not in filters})
    if unknown := unknown_names(params, [*checked.fields, *filters]):
        raise ValidationError({**wrong, **unknown})
    if wrong:
        raise ValidationError(wrong)
    checked.is_valid(raise_exception=True)
    return dict(checked.validated_data)


class Piece(NamedTuple):
    """A piece of a list; next: the cursor of what follows, None at the end."""

    rows: list[Any]
    total: int
    next: str | None

    def told(self, shown: Any) -> dict[str, Any]:
        return {"data": shown, "total": self.total, "has_more": self.next is not None, "next": self.next}


def piece(rows: QuerySet[Any], *, limit: int, after: str | None = None, order: str = NEWEST) -> Piece:
    """One piece of `rows` in an order of one field, and among equals of the key.

    The row of the cursor may be gone, or not match the filters any more. Raises ValidationError for a cursor
    that is none of this list in this order.
    """
    total = rows.count()
    down, name = order.startswith("-"), order.removeprefix("-")
    field: Field[Any, Any] = rows.model._meta.pk if name == "pk" else rows.model._meta.get_field(name)
    if after is not None:
        rows = rows.filter(_beyond(rows.model, field, after, order))
    by = F(name)
    nulls = {"nulls_last": True} if field.null else {}
    rows = rows.order_by(by.desc(**nulls) if down else by.asc(**nulls), "-pk" if down else "pk")
    found = list(rows[: limit + 1])
    shown = found[:limit]
    return Piece(shown, total, _cursor(shown[-1], field, order) if len(found) > limit else None)


def _cursor(row: Model, field: Field[Any, Any], order: str) -> str:
    if field.primary_key:
        return public_id(type(row), row.pk)
    value = None if getattr(row, field.attname) is None else field.value_to_string(row)
    return _signer(type(row), order).sign_object([value, row.pk], compress=True)


def _signer(model: type[Model], order: str) -> Signer:
    """The signer of the cursors of one list in one order.

    Values that nobody made up are values of the field.
    """
    return Signer(salt=f"{model._meta.label} {order}")


def _beyond(model: type[Model], field: Field[Any, Any], after: str, order: str) -> Q:
    """The condition for rows that follow the one that the cursor names."""
    wrong = ValidationError({"after": ["is not the id of a row of this list, or of another order"]})
    than = "lt" if order.startswith("-") else "gt"
    if field.primary_key:
        if (key := key_of(model, after)) is None:
            raise wrong
        return Q(**{f"pk__{than}": key})
    try:
        text, key = _signer(model, order).unsign_object(after)
    except BadSignature:
        raise wrong from None
    name = field.name
    if text is None:
        return Q(**{f"{name}__isnull": True, f"pk__{than}": key})
    value = field.to_python(text)
    beyond = Q(**{f"{name}__{than}": value}) | Q(**{name: value, f"pk__{than}": key})
    return beyond | Q(**{f"{name}__isnull": True}) if field.null else beyond


def page(
    rows: QuerySet[Row],
    show: Callable[[Row], Any],
    *,
    limit: int,
    after: str | None = None,
    order: str = NEWEST,
) -> dict[str, Any]:
    """Return one piece of `rows` as it is told, newest first (ids rise over time).

    show: makes a row's values, best of one serializer for all (`JobBrief().to_representation`): its fields
    take milliseconds to make.
    """
    found = piece(rows, limit=limit, after=after, order=order)
    return found.told([show(row) for row in found.rows])


class CursorPages(BasePagination):
    """The lists of viewsets."""

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list[Any]:
        values = dict(view.parameters)
        word = values.pop("order", None)
        down = "-" if word and word.startswith("-") else ""
        order = f"{down}{view.orders[word.removeprefix('-')]}" if word else NEWEST
        self.piece = piece(queryset, limit=values["limit"], after=values.get("after"), order=order)
        return self.piece.rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response(self.piece.told(data))

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["data", "total", "has_more", "next"],
            "properties": {
                "data": schema,
                "total": {"type": "integer", "description": "Rows that the filters match."},
                "has_more": {"type": "boolean"},
                "next": {"type": ["string", "null"], "description": "Give it as `after` for what follows."},
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return []  # they are the view's query


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
    made = inline_serializer(name=f"{item.__name__}List", fields={"data": item(many=True)})
    set_override(made, "many", False)  # the answer is an object, also where the action is `list`
    return made
