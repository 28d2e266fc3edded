"""Uploads of the client at a real portal: by digest, whole, in parts, and after a cut."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client.foretune import Client, _files
from client.foretune._errors import Unreachable
from client.foretune._sync import files as sync_files
from portal.accounts.models import User
from scheduler.models import DatasetFile, Upload, UploadPart
from tests.harness import world
from tests.portal.conftest import Program, token_client

pytestmark = pytest.mark.django_db
CONTENT = world.training_lines(40) + b"\n"


class Door:
    """The portal in this process; `asked` are the requests with the bytes of their bodies."""

    def __init__(self, owner: User) -> None:
        self.program: Program = token_client(owner)
        self.asked: list[tuple[str, str, int]] = []
        self.cut_after = 100
        plain = self.program.authorization.removeprefix("Bearer ")
        self.client = Client("http://testserver", plain, transport=httpx2.MockTransport(self.answer), tries=1)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        body = request.read()
        self.asked.append((request.method, request.url.path, len(body)))
        if len(self.asked) > self.cut_after:
            raise httpx2.ConnectError("cut")
        sent = {name: value for name, value in request.headers.items() if name != "content-length"}
        kind = sent.pop("content-type", "")
        answer: Any = self.program.generic(
            request.method, str(request.url.raw_path.decode()), body, content_type=kind, headers=sent
        )
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        return httpx2.Response(answer.status_code, content=content, headers=dict(answer.items()))


@pytest.fixture
def door() -> Door:
    return Door(world.user("ada"))


def test_a_file_goes_once_and_then_by_its_digest(door: Door, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(CONTENT)
    first = door.client.files.upload(path)
    assert (first.filename, first.rows) == ("rows.jsonl", 40)
    door.asked.clear()
    assert door.client.files.upload(path, filename="other.jsonl") == first
    assert door.asked == [("POST", "/api/files/", 0)]
    assert door.client.files.content(first) == CONTENT
    assert [one.id for one in door.client.files.list(name="rows.jsonl")] == [first.id]


def test_a_large_file_goes_in_parts_and_on_after_a_cut(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    part = len(CONTENT)
    for module in (_files, sync_files):
        monkeypatch.setattr(module, "PART_BYTES", part)
    large = 3 * CONTENT + CONTENT[: CONTENT.index(b"\n") + 1]  # parts that are alike, and a short one
    door.cut_after = 5  # digest, list, begin, two parts
    with pytest.raises(Unreachable):
        door.client.files.upload(io.BytesIO(large), filename="large.jsonl")
    assert (UploadPart.objects.count(), DatasetFile.objects.count()) == (2, 0)
    door.cut_after = 100
    door.asked.clear()
    file = door.client.files.upload(io.BytesIO(large), filename="large.jsonl")
    assert (file.bytes, file.rows, file.filename) == (len(large), 121, "large.jsonl")
    sent = [size for method, path, size in door.asked if path.endswith("/parts/")]
    assert (len(sent), min(sent) < part < max(sent)) == (2, True)
    assert [upload.state for upload in Upload.objects.all()] == ["completed"]
