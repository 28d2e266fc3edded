"""`manage.py backup` and `manage.py restore` as an administrator runs them.

The tests run on both databases.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.harness.servers import Postgres
from tests.portal.ops.backup.portal_process import Portal

Portals = tuple[Portal, Portal]


POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.slow)  # two databases are filled


@pytest.fixture(scope="module", params=["sqlite", POSTGRESQL])
def portals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portals]:
    """Two portals on empty databases.

    The first becomes a portal with something of everything in it.
    """
    root = tmp_path_factory.mktemp(request.param)
    for name in ("first", "second"):
        (root / name).mkdir()
    if request.param == "sqlite":
        urls = [f"sqlite:///{root / name / 'portal.sqlite3'}" for name in ("first", "second")]
        made = [Portal(root / name, url) for name, url in zip(("first", "second"), urls, strict=True)]
    else:
        server: Postgres = request.getfixturevalue("postgres")
        path = f"{server.binaries}{os.pathsep}{os.environ['PATH']}"
        with psycopg.connect(server.url, autocommit=True) as admin:
            for name in ("first", "second"):
                admin.execute(f"CREATE DATABASE {name}")
        base = server.url.rsplit("/", 1)[0]
        made = [Portal(root / name, f"{base}/{name}", path) for name in ("first", "second")]
    yield made[0], made[1]
    for portal in made:
        portal.end()


@pytest.fixture(scope="module")
def before(portals: Portals) -> Any:
    """The content of the first portal, once it is filled."""
    return portals[0].small_portal("fill")


@pytest.fixture(scope="module")
def archive(portals: Portals, before: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the first portal."""
    folder = tmp_path_factory.mktemp("backups")
    said = portals[0].manage("backup", str(folder))
    written = next(folder.glob("foretune-*.tar"))
    assert str(written) in said
    return written


def test_a_portal_lives_on_in_a_fresh_database(portals: Portals, before: Any, archive: Path) -> None:
    _, second = portals
    second.manage("restore", str(archive))
    after = second.small_portal("tell")
    assert after["signed_in"] == "/"
    assert after["artifact"] == "weights"
    assert after["files"] == before["files"]
    assert unchanging(after["rows"]) == unchanging(before["rows"])
    assert not list(second.data.glob("restore-*"))


def test_a_backup_is_for_its_owner_alone(archive: Path) -> None:
    assert archive.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("portals", ["sqlite"], indirect=True)
def test_a_backup_into_no_folder_names_the_folder_to_make(
    portals: Portals, archive: Path, tmp_path: Path
) -> None:
    said = portals[0].refuses("backup", str(tmp_path / "nightly" / "portal.tar"))
    assert f"There is no folder {tmp_path / 'nightly'}: make it first" in said


@pytest.mark.parametrize("portals", ["sqlite"], indirect=True)
def test_what_a_killed_backup_left_is_in_nobodys_way(portals: Portals, archive: Path, tmp_path: Path) -> None:
    (tmp_path / ".portal.tar.partial").write_text("cut short")
    portals[0].manage("backup", str(tmp_path / "portal.tar"))
    assert (tmp_path / "portal.tar").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("portals", [POSTGRESQL], indirect=True)
def test_a_portal_with_people_in_it_is_replaced_only_by_force(portals: Portals, archive: Path) -> None:
    first, _ = portals
    assert "--force" in first.refuses("restore", str(archive))
    assert "Restored" in first.manage("restore", str(archive), "--force")


def unchanging(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without when ada was last here: looking at a portal signs her in."""
    for row in rows:
        row["fields"].pop("last_login", None)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("portals", ["sqlite"], indirect=True)  # nothing here depends on the database
def test_a_damaged_archive_changes_nothing(portals: Portals, archive: Path, tmp_path: Path) -> None:
    first, _ = portals
    whole, damaged = archive.read_bytes(), tmp_path / "damaged.tar"
    damaged.write_bytes(whole[: len(whole) // 2])
    assert "not a complete archive" in first.refuses("restore", str(damaged), "--force")
    damaged.write_bytes(whole.replace(b"weights", b"WEIGHTS"))
    assert "adapter/model.bin" in first.refuses("restore", str(damaged), "--force")
    assert first.small_portal("tell")["artifact"] == "weights"


@pytest.mark.parametrize("portals", [POSTGRESQL], indirect=True)
def test_a_missing_program_of_postgresql_is_named_with_its_package(
    portals: Portals, before: Any, tmp_path: Path
) -> None:
    first, _ = portals
    said = first.refuses("backup", str(tmp_path), path=str(tmp_path))
    assert "apt-get install postgresql-client" in said
    assert not list(tmp_path.iterdir())
