"""Requests straight at the WSGI application."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.fixture(autouse=True)
def _open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's connection outlives the requests made here."""
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
