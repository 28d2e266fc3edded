"""Two hosts that start together migrate one after the other."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from portal.management.commands import migrate
from tests.harness.threads import at_once

DJANGOS = migrate.Command.__mro__[1]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.two_databases]


def test_the_command_is_the_one_that_waits() -> None:
    from django.core.management import get_commands

    assert get_commands()["migrate"] == "portal"


def test_of_two_at_once_one_waits_for_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = [], []
    both_tried = threading.Event()

    def handle(self: object, *args: Any, **options: Any) -> None:
        inside.append(1)
        most.append(len(inside))
        both_tried.wait(0.5)  # the other one would be in by then
        inside.pop()

    monkeypatch.setattr(DJANGOS, "handle", handle)
    answers = at_once(*[lambda: call_command("migrate", verbosity=0)] * 3)
    assert answers == [None] * 3
    assert most == [1, 1, 1]


def test_the_lock_is_free_again_after_a_migration_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, *args: Any, **options: Any) -> None:
        raise ValueError("no such column")

    with monkeypatch.context() as broken:
        broken.setattr(DJANGOS, "handle", fails)
        with pytest.raises(ValueError, match="no such column"):
            call_command("migrate", verbosity=0)
    call_command("migrate", verbosity=0)
    assert connection.introspection.table_names()
