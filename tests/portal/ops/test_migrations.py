"""Upgrades while processes of the old version go on.

They work while the database is migrated, and afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.db import models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations import AddField, AlterField, CreateModel
from django.db.migrations.state import ProjectState

OURS = ("accounts", "events", "knowledge", "scheduler")


@pytest.fixture(autouse=True)
def _with_migrations(settings: Any) -> None:
    """Other tests make their tables from the models."""
    settings.MIGRATION_MODULES = {}


def upgrades() -> Iterator[Migration]:
    """Yield every migration that an upgrade goes through, in order."""
    loader = MigrationLoader(None, replace_migrations=False)
    last = [node for node in loader.graph.leaf_nodes() if not loader.disk_migrations[node].replaces]
    steps = dict.fromkeys(step for node in last for step in loader.graph.forwards_plan(node))
    yield from (loader.disk_migrations[step] for step in steps)


def unfilled(steps: Iterable[Migration]) -> list[str]:
    """Columns that old processes would have to fill in, as app.model.name.

    They were added to an existing table as required, or became required in it, and have no default in the
    database.
    """
    state, found = ProjectState(), {}
    for migration in steps:
        app, later = migration.app_label, migration.app_label in OURS and not migration.initial
        for operation in migration.operations:
            if later and isinstance(operation, AddField | AlterField):
                field = operation.field
                known = state.models[app, operation.model_name_lower].fields.get(operation.name)
                if not field.null and not field.many_to_many and (known is None or known.null):
                    found[app, operation.model_name_lower, operation.name] = None
            operation.state_forwards(app, state)
    now = {at: state.models[at[:2]].fields.get(at[2]) for at in found if at[:2] in state.models}
    return [
        ".".join(at) for at, field in now.items() if field and not field.null and not field.has_db_default()
    ]


def test_old_processes_can_add_rows_to_every_table() -> None:
    """They leave out columns that they do not know: the database has to fill them in."""
    assert unfilled(upgrades()) == [], "these need a db_default"


def test_a_column_that_nobody_fills_in_is_found() -> None:
    class Initial(Migration):
        initial = True
        operations = [CreateModel("Thing", [("id", models.AutoField(primary_key=True))])]

    class Later(Migration):
        operations = [
            AddField("thing", "size", models.IntegerField(default=0)),
            AddField("thing", "filled", models.IntegerField(default=0, db_default=0)),
            AddField("thing", "unknown", models.IntegerField(null=True)),
        ]

    steps = [Initial("0001_initial", "scheduler"), Later("0002_later", "scheduler")]
    assert unfilled(steps) == ["scheduler.thing.size"]
