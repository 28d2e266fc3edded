"""Whether a body is read is decided by size, session and origin.

The decision comes before a byte of the body reaches memory or disk.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.test import Client

from portal.accounts.models import Scope, User
from portal.clock import database_now
from portal.serving.connection import BUFFERED_BYTES
from scheduler.errors import OverQuota
from scheduler.loop.sweeps import sweep
from scheduler.models import DatasetFile, UploadHold
from scheduler.selectors.files import storage_of
from scheduler.services.files.quotas import HOLD_LIFETIME, upload_hold
from scheduler.services.files.uploads import store_file
from tests.harness import world
from tests.portal.conftest import Program, token_client
from tests.portal.limits.bodies.announced import LARGE, ROW, Body, announce, session

pytestmark = pytest.mark.django_db
ADDRESSES = (
    "/login/",
    "/jobs/new/",
    "/jobs/new/upload/",
    "/api/files/",
    "/history/",
    "/api/jobs/",
    "/nowhere/",
)
NAMELESS = {"HTTP_COOKIE": f"csrftoken={'c' * 32}"}  # Django reads a form of theirs to compare the two


def is_read(path: str, size: int = LARGE, **environ: str) -> bool:
    body = Body()
    status, _ = announce(path, size, body, **environ)
    assert body.touched or status in (401, 403, 413)
    return body.touched


def open_below(folder: Path) -> list[str]:
    """Files of this process, with or without a name."""
    paths = (os.path.realpath(link) for link in Path("/proc/self/fd").iterdir())
    return [path for path in paths if path.startswith(f"{folder}/")]


@pytest.mark.parametrize("path", ADDRESSES)
def test_nobody_sends_much_without_signing_in(path: str) -> None:
    takes = path in ("/jobs/new/", "/jobs/new/upload/", "/api/files/", "/history/")
    for header in (NAMELESS, {"HTTP_AUTHORIZATION": "Bearer ft-wrong"}, {"HTTP_COOKIE": "sessionid=made-up"}):
        body = Body()
        assert announce(path, LARGE, body, **header)[0] == (401 if takes else 413)
        assert announce(path, BUFFERED_BYTES + 1, body, **header)[0] == 401
        assert announce(path, 10**30, body, **header)[0] == 413
        assert not body.touched


def test_strangers_that_enrol_send_no_more_than_is_buffered() -> None:
    body = Body()
    assert announce("/agent/v1/enrol", BUFFERED_BYTES + 1, body)[0] == 413
    assert not body.touched


def test_who_signed_in_sends_much_to_addresses_for_files_alone(browser: Client, settings: Any) -> None:
    assert announce("/jobs/new/policy/", **session(browser))[0] == 413
    too_much = settings.MAX_UPLOAD_BYTES + 1_000_000
    assert announce("/jobs/new/upload/", too_much, **session(browser))[0] == 413
    assert is_read("/jobs/new/upload/", **session(browser))
    assert not UploadHold.objects.exists()


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"HTTP_ORIGIN": "https://evil.example"}, True),
        ({"HTTP_ORIGIN": "null"}, True),
        ({"HTTP_REFERER": "https://evil.example/testserver/"}, True),
        ({"HTTP_SEC_FETCH_SITE": "cross-site"}, True),
        ({"HTTP_SEC_FETCH_SITE": "same-site"}, True),
        ({"HTTP_ORIGIN": "http://testserver"}, False),
        ({"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": "http://testserver"}, False),
    ],
)
def test_a_page_of_another_origin_uploads_nothing(
    browser: Client, headers: dict[str, str], refused: bool
) -> None:
    assert is_read("/jobs/new/upload/", **session(browser), **headers) is not refused


def test_a_token_that_only_reads_uploads_nothing(person: User) -> None:
    reads = token_client(person, Scope.READ).authorization
    assert announce("/api/files/", HTTP_AUTHORIZATION=reads)[0] == 403


def test_a_body_without_a_length_is_refused() -> None:
    status, reported = announce("/api/jobs/", 0, CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked")
    assert (status, reported["error"]["code"]) == (411, "length_required")


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, deflate", "aes128gcm"])
@pytest.mark.parametrize(
    "path", [*ADDRESSES, "/agent/v1/sync", "/agent/v1/enrol", "/agent/v1/claims/x/artifacts/y"]
)
def test_an_encoded_body_is_named_and_never_read(path: str, coding: str) -> None:
    body, headers = Body(b"\x1f\x8b" + bytes(98)), dict[str, str]()
    status, reported = announce(path, 100, body, headers, HTTP_CONTENT_ENCODING=coding)
    assert (status, body.touched, headers["Accept-Encoding"]) == (415, False, "identity")
    if reported:
        assert reported["error"]["code"] == "unsupported_media_type"
        assert coding.rpartition(" ")[2] in reported["error"]["message"]


@pytest.mark.parametrize("size", [0, 10])
def test_a_body_as_it_is_may_say_so(size: int) -> None:
    coding = "identity" if size else "gzip"  # of no body at all
    body = Body(b'{"a": "b"}'[:size])
    assert announce("/api/intents/", size, body, HTTP_CONTENT_ENCODING=coding)[0] == 401


def test_a_lost_connection_leaves_nothing_behind(browser: Client, settings: Any, tmp_path: Path) -> None:
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    head = b'--x\r\nContent-Disposition: form-data; name="upload"; filename="a.jsonl"\r\n\r\n'

    class Cut(Body):
        def read(self, *size: Any) -> bytes:
            if part := super().read(*size):
                return part
            assert open_below(tmp_path), "it had not got as far as the disk"
            assert not list(tmp_path.iterdir()), "a process that is killed leaves it there"
            raise OSError("the client is gone")

    stream = Cut(head + ROW * 100_000)
    assert announce("/jobs/new/upload/", 9_000_000, stream, **session(browser))[0] == 400
    assert open_below(tmp_path) == []
    assert not DatasetFile.objects.exists()
    assert not UploadHold.objects.exists()


@pytest.mark.parametrize(("path", "size"), [("/api/files/", LARGE), ("/login/", 2 * BUFFERED_BYTES)])
def test_a_person_occupies_two_threads_for_uploads_and_others_have_theirs(
    api: Program, stranger: Program, browser: Client, path: str, size: int
) -> None:
    mine = {"HTTP_AUTHORIZATION": api.authorization, **NAMELESS}
    theirs = {"HTTP_AUTHORIZATION": stranger.authorization, **NAMELESS}

    class Trickling(Body):
        """Sends nothing until what `meanwhile` does has ended."""

        def __init__(self, meanwhile: Callable[[], None]) -> None:
            super().__init__()
            self.meanwhile = [meanwhile]

        def read(self, *size: Any) -> bytes:
            while self.meanwhile:
                self.meanwhile.pop()()
            return super().read(*size)

    refused: list[tuple[int, str | None, bool]] = []
    others: list[bool] = []

    def third() -> None:
        for way in (mine, session(browser)):
            body, headers = Body(), dict[str, str]()
            status, reported = announce(path, size, body, headers, **way)
            sentence = reported is None or "2 uploads of yours are under way" in reported["error"]["message"]
            refused.append((status, headers.get("Retry-After"), body.touched or not sentence))
        others.append(is_read(path, size, **theirs))

    def second() -> None:
        announce(path, size, Trickling(third), **mine)

    announce(path, size, Trickling(second), **mine)
    assert refused == [(429, "5", False)] * 2
    assert others == [True]
    assert is_read(path, size, **mine), "both have ended"


def test_the_quota_counts_files_and_uploads_under_way(api: Program, person: User, settings: Any) -> None:
    settings.STORAGE_QUOTA_BYTES = 5_000_000
    with upload_hold(owner=person, size=4_000_000, now=database_now()):
        status, reported = announce("/api/files/", HTTP_AUTHORIZATION=api.authorization)
        assert (status, reported["error"]["code"]) == (413, "over_quota")
        assert "ask an administrator" in reported["error"]["message"]
    assert is_read("/api/files/", HTTP_AUTHORIZATION=api.authorization)
    UploadHold.objects.create(owner=person, bytes=4_900_000, begun_at=database_now() - HOLD_LIFETIME)
    with upload_hold(owner=person, size=4_900_000, now=database_now()):
        pass


def test_a_small_file_keeps_to_the_quota_too(
    api: Program, browser: Client, person: User, settings: Any
) -> None:
    settings.STORAGE_QUOTA_BYTES = len(ROW) * 3

    def upload(content: bytes) -> Any:
        return api.post("/api/files/", {"file": SimpleUploadedFile("a.jsonl", content)}, format="multipart")

    assert upload(ROW * 2).status_code == 201
    assert upload(ROW * 2).status_code == 201, "equal content is kept once"
    refused = upload(ROW * 3)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "over_quota")
    page = browser.post("/jobs/new/upload/", {"upload": SimpleUploadedFile("a.jsonl", ROW * 3)})
    assert "This exceeds your storage quota" in page.content.decode()
    assert storage_of(person).used_bytes == len(ROW) * 2
    answer = api.get("/api/me/").json()["storage"]
    assert answer == {"used_bytes": len(ROW) * 2, "quota_bytes": len(ROW) * 3}
    assert "70 B of 105 B" in browser.get("/jobs/new/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_i13_uploads_at_once_keep_to_the_quota(settings: Any) -> None:
    person = world.user("ada")
    settings.STORAGE_QUOTA_BYTES = 400
    barrier = threading.Barrier(6)

    def store(number: int) -> None:
        row = b'{"prompt": "%d", "completion": "b"}\n' % number
        barrier.wait()
        try:
            store_file(owner=person, stream=io.BytesIO(row * 3), filename="a", now=database_now())
        except OverQuota:
            pass
        finally:
            connections.close_all()

    threads = [threading.Thread(target=store, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert DatasetFile.objects.count() == 3
    assert storage_of(person).used_bytes <= 400


def test_a_killed_process_leaves_no_hold_for_ever(person: User) -> None:
    UploadHold.objects.create(owner=person, bytes=1, begun_at=database_now() - HOLD_LIFETIME)
    sweep(database_now())
    assert not UploadHold.objects.exists()
