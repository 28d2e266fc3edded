"""Planted secrets are searched for wherever the portal writes or answers (I17)."""

from __future__ import annotations

import io
import json
import logging
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

from portal.accounts.models import AuditEntry
from portal.events.models import Event
from portal.logs import JsonFormatter
from portal.web.people import tokens
from tests.portal.access import table
from tests.portal.access.asking import AccessMatrix
from tests.portal.access.sides import SECRETS

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
SHOWN_ONCE = ("token", "join_token", "node_token", "password")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Every line that any logger writes meanwhile, as production writes it."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def rows() -> str:
    """The texts of the audit record and the histories."""
    tables = (AuditEntry.objects, Event.objects)
    return json.dumps([list(manager.values()) for manager in tables], default=str)


def shown_once(text: str) -> list[str]:
    """The secrets that an answer hands over."""
    body = text.partition("\n\n")[2]
    try:
        answer = json.loads(body)
    except ValueError:
        return []
    return [value for name in SHOWN_ONCE if isinstance(answer, dict) and (value := answer.get(name))]


def test_no_act_writes_a_secret_into_records_or_logs(
    matrix: AccessMatrix, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, written = [], []
    monkeypatch.setattr(matrix, "before_rollback", lambda: written.append(rows()))
    for row in table.read():
        if row.method in ("POST", "PUT", "DELETE"):
            role = "node" if row.address.startswith("/agent/") else "admin"
            made += shown_once(matrix.ask(role, row.method, row.address, row.body).text)
    assert len(made) == 6, "three tokens, a join token and two passwords"
    everything = "\n".join([*written, log.getvalue()])
    assert "user locked out" in everything
    assert "POST /api/users/" in everything
    assert not [secret for secret in [*matrix.askers.secrets, *made] if secret in everything]


@pytest.mark.parametrize("trouble", [RuntimeError, ConnectionError])
def test_error_pages_repeat_nothing_of_the_error(
    matrix: AccessMatrix, monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]
) -> None:
    def fail(_: object) -> None:
        raise trouble(" ".join(SECRETS.values()))

    monkeypatch.setattr(tokens, "own_tokens", fail)
    answer = matrix.ask("member", "GET", "/tokens/")
    assert answer.status == "500"
    assert not [secret for secret in matrix.askers.secrets if secret in answer.text]


def test_a_log_masks_tokens_of_every_kind(matrix: AccessMatrix, log: io.StringIO) -> None:
    for secret in (SECRETS["HF_TOKEN"], *matrix.askers.tokens.values(), SECRETS["DATABASE_URL"]):
        logging.getLogger("portal").error("refused by %s", secret)
    assert not [secret for secret in matrix.askers.secrets if secret in log.getvalue()]
    assert log.getvalue().count("***") == len(matrix.askers.tokens) + 2


def test_a_backup_lists_no_secret(matrix: AccessMatrix, tmp_path: Path) -> None:
    reported = io.StringIO()
    call_command("backup", tmp_path / "backup.tar", stdout=reported)
    with tarfile.open(tmp_path / "backup.tar") as archive:
        manifests = [archive.extractfile(name) for name in archive.getnames() if name.endswith(".json")]
        listed = [
            reported.getvalue(),
            *archive.getnames(),
            *(file.read().decode() for file in manifests if file),
        ]
    assert manifests
    assert not [secret for secret in matrix.askers.secrets if any(secret in line for line in listed)]
