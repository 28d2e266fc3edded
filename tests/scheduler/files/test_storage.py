"""Uploads meet a full disk: nothing is half stored (F9)."""

from __future__ import annotations

import errno
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal.clock import database_now
from scheduler.loop.sweeps import sweep
from scheduler.models import Artifact, DatasetFile
from scheduler.services.files import storage
from tests.harness import world
from tests.harness.fake_node import FakeNode

pytestmark = pytest.mark.django_db


@pytest.fixture
def _full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing succeeds, syncing finds no room: the worst moment."""

    def no_room(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage.os, "fsync", no_room)


def leftovers() -> list[Any]:
    return [*(settings.DATA_DIR / "arriving").glob("*")]


@pytest.mark.usefixtures("_full_disk")
def test_an_upload_of_data_leaves_nothing_behind() -> None:
    with pytest.raises(storage.StorageFull):
        world.data_file(world.user())
    assert not DatasetFile.objects.exists()
    assert leftovers() == []


def test_an_artifact_is_refused_and_can_be_sent_again(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    world.placed_job(node)
    order = node.take_up()
    with monkeypatch.context():
        request.getfixturevalue("_full_disk")
        assert node.upload(order, "output/a.bin", b"content").status_code == 507
    assert not Artifact.objects.exists()
    assert leftovers() == []
    monkeypatch.undo()
    assert node.upload(order, "output/a.bin", b"content").status_code == 204


@pytest.mark.parametrize("second", ["output/a/b", "output", "output/" + "x" * 256])
def test_a_path_that_no_file_system_can_hold_is_refused(node: FakeNode, second: str) -> None:
    world.placed_job(node)
    order = node.take_up()
    assert node.upload(order, "output/a", b"content").status_code == 204
    refused = node.upload(order, second, b"content")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_report")
    assert Artifact.objects.get().path == "output/a"
    assert leftovers() == []


class Killed(BaseException):
    """Nothing is tidied up after it, as `unlink` fails as well."""


def test_uploads_of_a_killed_process_are_removed(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    world.placed_job(node)
    order = node.take_up()
    with monkeypatch.context() as at_once:
        at_once.setattr(storage.os, "fsync", killed)
        at_once.setattr(Path, "unlink", killed)
        with pytest.raises(Killed):
            world.data_file(world.user("ada"))
        with pytest.raises(Killed):
            node.upload(order, "output/a.bin", b"content")
    files = sorted(path for path in settings.DATA_DIR.glob("**/*") if path.is_file())
    assert len(leftovers()) == 2
    sweep(database_now())
    assert len(leftovers()) == 2, "they may still arrive"
    sweep(database_now() + timedelta(days=1))
    assert leftovers() == []
    assert len([path for path in files if path.exists()]) == len(files) - 2
