"""A disk of the portal that fills up: told, survived, and left again.

Small numbers take the place of a small disk; `usage` is what its file system would say.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client
from rest_framework.test import APIClient

from portal import disk
from portal.accounts.models import User
from portal.clock import database_now
from portal.ops import health
from scheduler.loop.sweeps import sweep
from scheduler.loop.tick import tick
from scheduler.models import DatasetFile, Job
from tests.harness import world
from tests.harness.fake_node import FakeNode
from tests.portal.conftest import Program

TOTAL = 90_000_000
Usage = Callable[[int], None]
FULL = "The disk of the portal is full: 0 B of 90 MB are free. New work is refused, running trainings go on."
LINES = SimpleUploadedFile("x.jsonl", world.training_lines())


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Usage:
    """Let so many bytes be free for ordinary users."""
    settings.DATA_DIR = tmp_path

    def free(free_bytes: int) -> None:
        def usage() -> tuple[int, int]:
            left = free_bytes - disk.held_bytes()
            return TOTAL - left, left

        monkeypatch.setattr(disk, "_usage", usage)

    return free


def test_the_reserve_is_given_away_on_a_full_disk_and_made_again_later(free: Usage, tmp_path: Path) -> None:
    reserve = tmp_path / "reserve"
    free(40_000_000)
    disk.keep_reserve()
    assert reserve.stat().st_size == 4_500_000
    assert disk.disk().free_bytes == 35_500_000
    disk.relieve()
    assert reserve.exists()
    free(4_500_000)
    assert (disk.disk().free_bytes, disk.disk().is_full) == (0, True)
    disk.relieve()
    assert not reserve.exists()
    assert (disk.disk().free_bytes, disk.disk().is_full) == (0, True)
    disk.keep_reserve()
    assert not reserve.exists()
    free(14_000_000)
    disk.keep_reserve()
    assert reserve.exists()
    assert not disk.disk().is_full


def test_a_reserve_that_finds_no_room_leaves_nothing(
    free: Usage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(40_000_000)

    def no_room(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.os, "fsync", no_room)
    disk.keep_reserve()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free_bytes", "trouble"),
    [
        (50_000_000, ""),
        (13_600_000, ""),
        (13_400_000, "The disk of the portal is 90% full: 9 MB of 90 MB are free."),
        (7_000_000, "The disk of the portal is 97% full: 2 MB of 90 MB are free."),
        (6_000_000, FULL.replace("0 B", "2 MB")),
        (0, FULL),
    ],
)
def test_trouble_is_told_from_nine_tenths_on(free: Usage, free_bytes: int, trouble: str) -> None:
    free(free_bytes)
    assert disk.disk().trouble == trouble


def test_readyz_names_the_disk(
    client: Client, db: None, free: Usage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "broker_works", lambda: "ok")
    tick()
    free(10_000_000)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["warnings"] == ["The disk of the portal is 94% full: 6 MB of 90 MB are free."]
    free(0)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["disk"] == FULL
    assert answer.json()["checks"]["database"] == "ok"


def full(of: type[Exception], text: str) -> OperationalError:
    failed = OperationalError(text)
    failed.__cause__ = of(text)
    return failed


@pytest.mark.parametrize(
    "failed",
    [
        full(sqlite3.OperationalError, "database or disk is full"),
        full(sqlite3.OperationalError, "disk I/O error"),
        full(psycopg.OperationalError, "could not extend file: No space left on device"),
        OSError(28, "No space left on device"),
        OSError(27, "File too large"),
    ],
    ids=["SQLite", "its log", "PostgreSQL", "file", "limit"],
)
@pytest.mark.parametrize("address", ["/", "/api/me/", "/agent/v1/sync"])
def test_whatever_fails_on_a_full_disk_names_it(
    admin_browser: Client, monkeypatch: pytest.MonkeyPatch, free: Usage, failed: Exception, address: str
) -> None:
    free(0)

    def fails(*_: Any, **__: Any) -> None:
        raise failed

    for used in ("portal.web.home.waiting_jobs", "portal.api.people.me.storage_of"):
        monkeypatch.setattr(used, fails)
    monkeypatch.setattr("portal.nodes.endpoint.node_by_token", fails)
    admin_browser.raise_request_exception = False
    headers = {"Authorization": "Bearer fnode-x"} if address.startswith("/agent") else {}
    ask = admin_browser.post if headers else admin_browser.get
    answer = ask(address, headers=headers)
    assert answer.status_code == 507
    assert answer["Retry-After"]
    assert "The disk of the portal is full: 0 B of 90 MB are free" in answer.content.decode()


def test_a_database_that_is_away_is_no_full_disk(
    admin_browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr("portal.web.home.waiting_jobs", fails)
    admin_browser.raise_request_exception = False
    assert admin_browser.get("/").status_code == 503


def test_new_work_is_refused_on_a_full_disk_and_people_may_act(
    api: Program, browser: Client, data_file: DatasetFile, free: Usage
) -> None:
    free(0)
    body = {"model": "builtin/tiny-llama", "training_file": str(data_file.pk)}
    answer = api.post("/api/jobs/", body, format="json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage_full")
    assert answer.json()["error"]["message"] == FULL
    browser.raise_request_exception = False
    page = browser.post("/jobs/new/", {**body, "goal": "balanced"})
    assert (page.status_code, Job.objects.count()) == (507, 0)
    assert "The disk of the portal is full" in page.content.decode()
    upload = browser.post("/jobs/new/", {"model": "builtin/tiny-llama", "upload": LINES})
    assert "The disk of the portal is full" in upload.content.decode()
    assert "The disk of the portal is full" in browser.get("/jobs/").content.decode()


def test_outputs_of_trainings_wait_at_their_node_while_the_disk_is_full(free: Usage, db: None) -> None:
    node: FakeNode = world.fake_node()
    world.placed_job(node)
    order = node.take_up()
    free(0)
    answer = node.upload(order, "output/adapter.bin", b"learnt")
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage_full")
    free(50_000_000)
    assert node.upload(order, "output/adapter.bin", b"learnt").status_code == 204


def test_signing_in_takes_from_the_reserve(client: Client, person: User, free: Usage, tmp_path: Path) -> None:
    free(40_000_000)
    disk.keep_reserve()
    free(4_500_000)
    assert client.get("/login/").status_code == 200
    assert not (tmp_path / "reserve").exists()


def test_the_loop_gives_the_reserve_away_and_the_sweep_makes_it(
    db: None, free: Usage, tmp_path: Path
) -> None:
    free(40_000_000)
    sweep(database_now())
    assert (tmp_path / "reserve").exists()
    free(4_500_000)
    tick()
    assert not (tmp_path / "reserve").exists()


def test_home_warns_administrators_from_nine_tenths_on(admin_browser: Client, free: Usage) -> None:
    browser = Client()
    browser.force_login(world.user())
    free(10_000_000)
    assert "The disk of the portal is 94% full" in admin_browser.get("/").content.decode()
    assert "The disk of the portal is" not in browser.get("/").content.decode()


def test_what_takes_room_is_shown(
    admin_browser: Client, admin_api: APIClient, client: Client, data_file: DatasetFile
) -> None:
    node = world.fake_node()
    job = world.placed_job(node, owner=data_file.owner, training_file=data_file, name="a run")
    order = node.take_up()
    node.save_checkpoint(order, 10)
    node.upload(order, "output/adapter.bin", bytes(1000))
    report = admin_api.get("/api/storage/").json()
    assert report["kinds"] == {"training files": data_file.bytes, "outputs": 1000, "checkpoints": 13}
    (person,) = report["people"]
    assert person == {
        "id": f"user-{data_file.owner_id}", "name": data_file.owner.username, "files_bytes": data_file.bytes,
        "outputs_bytes": 1000, "checkpoints_bytes": 13,
    }  # fmt: skip
    assert [(row["id"], row["name"]) for row in report["jobs"]] == [(job.pk, "a run")]
    assert report["disk"]["total_bytes"] > report["disk"]["free_bytes"] > 0
    page = admin_browser.get("/storage/").content.decode()
    assert "a run" in page
    assert data_file.owner.username in page
    assert 'foretune_stored_bytes{kind="outputs"} 1000.0' in client.get("/metrics").content.decode()
