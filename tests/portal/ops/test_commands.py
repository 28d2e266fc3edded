"""Management commands with arguments that nobody means are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from portal.accounts.models import User
from scheduler.models import JoinToken
from tests.harness import world

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.mark.parametrize(
    ("hours", "why"),
    [
        *((odd, f"argument --hours: '{odd}' is no number") for odd in ("nan", "inf", "1_0")),
        *((far, "--hours must be above 0 and at most 8,760") for far in ("1e300", "-1", "0", "8761")),
    ],
)
def test_a_join_token_has_an_end(hours: str, why: str) -> None:
    world.admin()
    with pytest.raises(CommandError, match=why):
        call_command("join_token", f"--hours={hours}")
    assert not JoinToken.objects.exists()


@pytest.mark.parametrize("uses", ["-1", "0", "1001", "9" * 30])
def test_a_join_token_is_for_some_nodes(uses: str) -> None:
    world.admin()
    with pytest.raises(CommandError, match="--uses from 1 to 1,000"):
        call_command("join_token", f"--uses={uses}")


@pytest.mark.parametrize("number", ["-1", "0", "4711", str(2**63), "9" * 30])
def test_a_decision_that_there_is_not(number: str) -> None:
    with pytest.raises(CommandError, match=f"No decision {number} is kept"):
        call_command("replay_decision", number)


@pytest.mark.parametrize("jobs", ["-1", "0", "10001", "9" * 30])
def test_demo_data_are_bounded(jobs: str) -> None:
    with pytest.raises(CommandError, match="--jobs must be from 1 to 10,000"):
        call_command("demo_data", f"--jobs={jobs}")
    assert not User.objects.exists()


def test_tables_replace_no_other_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written: No such file or directory"):
        call_command("export_trace", str(tmp_path / "nowhere" / "past.csv"))
    other = tmp_path / "settings"
    other.write_text("precious")
    with pytest.raises(CommandError, match=r"name a file that ends in \.csv"):
        call_command("export_trace", str(other))
    with pytest.raises(CommandError, match=r"name a file that ends in \.csv"):
        call_command("export_history", str(other))
    assert other.read_text() == "precious"


def test_a_backup_replaces_no_file_but_a_backup(tmp_path: Path) -> None:
    other, archive = tmp_path / "settings", tmp_path / "portal.tar"
    other.write_text("precious")
    with pytest.raises(CommandError, match="exists and is no backup: name another file, or a folder"):
        call_command("backup", str(other))
    assert other.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [other]
    call_command("backup", str(archive))
    before = archive.stat().st_ino
    call_command("backup", str(archive))
    assert archive.stat().st_ino != before
