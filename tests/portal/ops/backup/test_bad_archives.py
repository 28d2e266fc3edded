"""Archives that are damaged, foreign or hostile.

They are refused before anything changes.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from portal.ops.backup.errors import ArchiveError, BadArchive, WrongPortal
from portal.ops.backup.manifest import Member, check_fits, parse, present
from portal.ops.backup.reading import is_empty, restore, unpack
from tests.harness.hostile import bounded, json_texts

HOSTILE = json_texts(1_000_000)
CONTENT = b"content"
GOOD = {"database": CONTENT, "files/ab/abc": CONTENT}


def about(**values: Any) -> bytes:
    members = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in GOOD.items()
    }
    whole = {
        "created_at": "2026-11-01",
        "vendor": "sqlite",
        "migrations": [],
        "members": members,
        "format": 1,
    }
    return json.dumps({**whole, **values}).encode()


def archive(path: Path, *entries: tuple[str | tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for entry, content in entries:
            info = tarfile.TarInfo(entry) if isinstance(entry, str) else entry
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, "/etc/passwd"
    return made


def test_a_good_archive_is_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", *GOOD.items(), ("manifest.json", about()))
    unpack(path, tmp_path / "out")
    assert (tmp_path / "out" / "files" / "ab" / "abc").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "entry",
    [
        "files/../../escaped",
        "../escaped",
        "/tmp/escaped",
        "files//escaped",
        "files/./escaped",
        "files",
        "secret_key",
        "broker/escaped",
        "files\\..\\escaped",
        link("files/link", tarfile.SYMTYPE),
        link("files/link", tarfile.LNKTYPE),
        link("files/device", tarfile.CHRTYPE),
        link("files/folder", tarfile.DIRTYPE),
    ],
    ids=str,
)
def test_a_member_that_no_backup_would_make_is_refused(entry: Any, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", *GOOD.items(), (entry, b""), ("manifest.json", about()))
    with pytest.raises(BadArchive, match="which no backup of a portal would"):
        unpack(path, tmp_path / "out")
    assert not list(tmp_path.rglob("*escaped*"))


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([*GOOD.items()], "has no manifest.json"),
        ([("database", CONTENT), ("manifest.json", about())], "lacks 1 of its files"),
        ([*GOOD.items(), ("files/ab/more", b""), ("manifest.json", about())], "are not what"),
        (
            [("database", b"other"), ("files/ab/abc", CONTENT), ("manifest.json", about())],
            "among them database",
        ),
        ([*GOOD.items(), ("database", CONTENT), ("manifest.json", about())], "which no backup"),
        ([*GOOD.items(), ("manifest.json", b"{")], "cannot be read"),
        ([*GOOD.items(), ("manifest.json", b"[]")], "cannot be read"),
        ([*GOOD.items(), ("manifest.json", about(members={"database": {"size": 1}}))], "cannot be read"),
        ([*GOOD.items(), ("manifest.json", about(format=2))], "has format 2"),
    ],
)
def test_what_does_not_agree_with_its_manifest_is_refused(
    entries: list[Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(BadArchive, match=problem):
        unpack(archive(tmp_path / "a.tar", *entries), tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"no archive at all", b"\0" * 10_240])
def test_a_file_that_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(BadArchive):
        unpack(tmp_path / "a.tar", tmp_path / "out")


def sparse(name: str, size: int) -> bytes:
    """Return a member of GNU's old sparse format.

    It has no content at all, and `size` bytes once it is written.
    """
    head = tarfile.TarInfo(name)
    head.type, head.size = tarfile.GNUTYPE_SPARSE, 0
    block = bytearray(head.tobuf(tarfile.GNU_FORMAT))
    block[483:495] = b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("size", [3_000_000_000, 1_000_000])
def test_nothing_is_written_of_an_archive_whose_sizes_are_wrong(size: int, tmp_path: Path) -> None:
    whole = archive(tmp_path / "a.tar", *GOOD.items(), ("manifest.json", about())).read_bytes()
    (tmp_path / "b.tar").write_bytes(sparse("files/ab/large", size) + whole)
    with pytest.raises(BadArchive, match="which no backup of a portal would"):
        unpack(tmp_path / "b.tar", tmp_path / "out")
    padded = archive(tmp_path / "c.tar", *GOOD.items(), ("files/x", b"x"), ("manifest.json", about()))
    with pytest.raises(BadArchive, match="are not what"):
        unpack(padded, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_manifest_costs_much(name: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", *GOOD.items(), ("manifest.json", HOSTILE[name].encode()))
    with bounded(seconds=5), pytest.raises(BadArchive):
        unpack(path, tmp_path / "out")


def test_a_database_that_cannot_be_loaded_puts_the_folders_back(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path / "data"
    kept = settings.DATA_DIR / "files" / "kept"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"before")
    entries = [*GOOD.items(), ("manifest.json", about(vendor=connection.vendor))]
    with pytest.raises(ArchiveError):
        restore(archive(tmp_path / "a.tar", *entries), force=True)
    assert [path.name for path in settings.DATA_DIR.rglob("*")] == ["files", "kept"]
    assert kept.read_bytes() == b"before"


def test_files_without_people_are_not_nothing(db: None, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    assert is_empty()
    (tmp_path / "files" / "ab").mkdir(parents=True)
    assert not is_empty()


def test_an_archive_of_a_newer_version_is_refused(db: None) -> None:
    with pytest.raises(WrongPortal, match=r"newer version \(scheduler.9999_more\)"):
        check_fits(parse(about(vendor=connection.vendor, migrations=["scheduler.9999_more"])))


def test_an_archive_of_another_database_is_refused(db: None) -> None:
    with pytest.raises(WrongPortal, match="made from oracle"):
        check_fits(parse(about(vendor="oracle")))


def test_this_version_takes_its_own_archives(db: None, django_user_model: Any) -> None:
    now = django_user_model.objects.create_user("ada").date_joined
    check_fits(parse(present(now=now, members={"database": Member("00", 1)}).dump()))
