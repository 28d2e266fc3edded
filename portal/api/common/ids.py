"""Public ids of rows whose keys are whole numbers, and names in their place.

`team-12` is the team of the key 12. Wherever one names a row, its name does as well, where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import BigIntegerField, Model, QuerySet
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from knowledge.models import Execution, PredictorVersion
from portal.accounts import public_ids
from portal.accounts.models import ApiToken, AuditEntry, Team, User
from scheduler.errors import NotFound
from scheduler.models import MaintenanceWindow, Market, MarketSample
from scheduler.models.ids import is_id_like

PREFIXES: dict[type[Model], str] = {
    Team: public_ids.PREFIXES[Team],
    User: public_ids.PREFIXES[User],
    ApiToken: "tok-",
    AuditEntry: "audit-",
    Execution: "exec-",
    MaintenanceWindow: "win-",
    Market: "mkt-",
    MarketSample: "sample-",
    PredictorVersion: "pred-",
}
LONGEST_NAME = 200
Row = TypeVar("Row", bound=Model)


def public_id(model: type[Model], key: int | str) -> str:
    """The id of a row as programs see it."""
    return f"{PREFIXES.get(model, '')}{key}"


def key_of(model: type[Model], text: str) -> int | str | None:
    """The key that a public id names; None if it is no id of such rows.

    There may be no such row.
    """
    example = model._meta.pk.get_default() if model._meta.pk.has_default() else None
    if isinstance(example, str):
        return text if is_id_like(text, example) else None
    prefix = PREFIXES.get(model, "")
    digits = text.removeprefix(prefix)
    whole = text.startswith(prefix) and len(digits) < 20 and digits.isascii() and digits.isdigit()
    key = int(digits) if whole else None
    return key if key is not None and key <= BigIntegerField.MAX_BIGINT and str(key) == digits else None


def named(rows: QuerySet[Row], text: str, by: str = "name") -> Row | None:
    """The row that an id or a name names; ids come first.

    by: the field of the name; empty: none.
    """
    key = key_of(rows.model, text)
    found = rows.filter(pk=key).first() if key is not None else None
    return found or (rows.filter(**{by: text}).first() if by and key is None else None)


def row_of(rows: QuerySet[Row], text: str, noun: str, by: str = "") -> Row:
    """The row that an id, or where `by` names a field a name, names. Raises NotFound."""
    row = named(rows, text, by)
    if row is None:
        raise NotFound(f"There is no such {noun}.")
    return row


class IdField(serializers.Field[Any, Any, Any, Any]):
    """The public id of a row of `model`; `source` names its key."""

    def __init__(self, model: type[Model], **kwargs: Any) -> None:
        self.model = model
        super().__init__(**{"source": "pk", "read_only": True, **kwargs})

    def to_representation(self, value: Any) -> str:
        return public_id(self.model, value)


class RowField(serializers.Field[Any, Any, Any, Any]):
    """A row that a body names by id or name; rows: those that the asker may name."""

    def __init__(self, rows: Callable[[User], QuerySet[Any]], **kwargs: Any) -> None:
        self.rows: Any = rows
        super().__init__(**{"write_only": True, **kwargs})

    def to_internal_value(self, data: Any) -> Model:
        if not isinstance(data, str):
            raise ValidationError("must be a text, the id or the name")
        rows: QuerySet[Any] = self.rows(self.context["request"].user)
        row: Model | None = named(rows, data, name_field(rows.model)) if len(data) <= LONGEST_NAME else None
        if row is None:
            raise ValidationError(f"is neither the id nor the name of a {rows.model._meta.verbose_name} here")
        return row


def name_field(model: type[Model]) -> str:
    """The field by which people name rows."""
    return "username" if model is User else "name"
