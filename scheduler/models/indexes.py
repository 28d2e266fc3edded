"""Indexes of PostgreSQL; SQLite gets a plain one of the column."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.expressions import F


class _OfPostgres(models.Index):
    """An index of one column; `form` says how PostgreSQL has it."""

    def __init__(self, column: str, *, name: str) -> None:
        self.column = column
        super().__init__(fields=[column], name=name)

    @property
    def form(self) -> models.Index:
        raise NotImplementedError

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        path, _, _ = super().deconstruct()
        return path, (self.column,), {"name": self.name}

    def clone(self) -> models.Index:
        return type(self)(self.column, name=self.name)

    def create_sql(self, model: Any, schema_editor: Any, using: str = "", **options: Any) -> Any:
        if schema_editor.connection.vendor == "postgresql":
            return self.form.create_sql(model, schema_editor, using=self.using, **options)
        return super().create_sql(model, schema_editor, using=using, **options)

    using = ""


class NullsLastIndex(_OfPostgres):
    """The greatest value first, rows without one last, and among equals the newest."""

    @property
    def form(self) -> models.Index:
        return models.Index(F(self.column).desc(nulls_last=True), F("id").desc(), name=self.name)


class PairsIndex(_OfPostgres):
    """A JSON object by what it contains."""

    using = " USING gin"

    @property
    def form(self) -> models.Index:
        return models.Index(fields=[self.column], opclasses=["jsonb_path_ops"], name=self.name)
