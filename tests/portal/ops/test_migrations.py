"""Upgrades while processes of the old version go on.

They work while the database is migrated, and afterwards. A new database takes one migration of
each app instead, which replaces those that an upgrade goes through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration
from django.db.migrations.operations import AddField, AlterField
from django.db.migrations.state import ProjectState
from django.utils import timezone

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


def columns_required_later() -> Iterator[tuple[str, str, str]]:
    """Yield app, model and field of each column required later.

    Such a column was added to an existing table as required, or became required in it.
    """
    state = ProjectState()
    for migration in upgrades():
        app, later = migration.app_label, migration.app_label in OURS and not migration.initial
        for operation in migration.operations:
            if later and isinstance(operation, AddField | AlterField):
                place, field = (app, operation.model_name_lower), operation.field
                known = state.models[place].fields.get(operation.name)
                if not field.null and not field.many_to_many and (known is None or known.null):
                    yield *place, operation.name
            operation.state_forwards(app, state)


def test_old_processes_can_add_rows_to_every_table() -> None:
    """They leave out columns that they do not know: the database has to fill them in."""
    now = MigrationLoader(None).project_state().models
    known = ((app, model, name) for app, model, name in columns_required_later() if (app, model) in now)
    fields = {(app, model, name): now[app, model].fields.get(name) for app, model, name in known}
    left = [at for at, field in fields.items() if field and not field.null and not field.has_db_default()]
    assert left == [], "these need a db_default"


def test_an_upgraded_database_has_the_tables_of_a_new_one() -> None:
    upgraded = ProjectState()
    for migration in upgrades():
        migration.mutate_state(upgraded, preserve=False)
    new = MigrationLoader(None)
    assert MigrationAutodetector(upgraded, new.project_state()).changes(new.graph) == {}


@pytest.mark.django_db
@pytest.mark.two_databases
def test_an_old_process_enrols_a_node() -> None:
    loader = MigrationLoader(connection, replace_migrations=False)
    before = loader.project_state(("scheduler", "0006_calibration")).apps
    times = dict.fromkeys(("state_since", "enrolled_at", "last_seen_at"), timezone.now())
    nodes = before.get_model("scheduler", "Node").objects
    nodes.create(name="old", state="ready", token_hash="0" * 64, **times)
