"""Downloads: whole, in pieces, not at all, from every door that gives a file."""

from __future__ import annotations

import hashlib
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
from django.conf import settings
from django.test import Client

from portal import node_package
from portal.clock import database_now
from portal.http.archives import Archive, Member
from portal.serving.outbox import Outbox
from portal.wheels import sha256_of
from scheduler.loop.tick import tick
from scheduler.models import Artifact, DatasetFile, Job
from scheduler.selectors.jobs import artifact_files
from scheduler.services.nodes.register import create_join_token
from tests.harness import world
from tests.portal.conftest import Program

CONTENT = bytes(range(256)) * 4
ETAG = f'"{hashlib.sha256(CONTENT).hexdigest()}"'
Ask = Callable[..., Any]


@pytest.fixture
def address(person: Any, data_file: DatasetFile) -> str:
    """Of an artifact that ended with its job."""
    node = world.fake_node()
    job = world.job(person, training_file=data_file)
    tick()
    order = node.take_up()
    node.upload(order, "adapter/model.bin", CONTENT)
    node.end(order, "succeeded")
    return f"/api/jobs/{job.pk}/artifacts/adapter/model.bin"


def body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def test_a_whole_download_says_that_it_can_go_on(api: Program, address: str) -> None:
    answer = api.get(address)
    assert (answer.status_code, body(answer)) == (200, CONTENT)
    assert (answer["ETag"], answer["Accept-Ranges"], answer["Content-Length"]) == (ETAG, "bytes", "1024")
    assert answer["Repr-Digest"].startswith("sha-256=:")
    assert "model.bin" in answer["Content-Disposition"]
    assert api.get(address, headers={"Accept": "application/octet-stream"}).status_code == 200
    head = api.head(address)
    assert (head.status_code, head["ETag"], head["Content-Length"], body(head)) == (200, ETAG, "1024", b"")


@pytest.mark.parametrize(
    ("asked", "begin", "end"),
    [
        ("bytes=1000-", 1000, 1024),
        ("bytes=0-0", 0, 1),
        ("bytes=1023-1023", 1023, 1024),
        ("bytes=5-9", 5, 10),
        ("bytes=5-99999", 5, 1024),
        ("bytes=-24", 1000, 1024),
        ("bytes=-99999", 0, 1024),
        ("Bytes = 5 - 9", 5, 10),
    ],
)
def test_a_piece_comes_as_asked(api: Program, address: str, asked: str, begin: int, end: int) -> None:
    answer = api.get(address, headers={"Range": asked})
    assert (answer.status_code, body(answer)) == (206, CONTENT[begin:end])
    assert answer["Content-Range"] == f"bytes {begin}-{end - 1}/1024"
    assert (answer["Content-Length"], answer["ETag"]) == (str(end - begin), ETAG)
    assert "model.bin" in answer["Content-Disposition"]


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=99999-100000", "bytes=-0", f"bytes={10**18}-"])
def test_beyond_the_end_is_416_with_the_size(api: Program, address: str, asked: str) -> None:
    answer = api.get(address, headers={"Range": asked})
    assert (answer.status_code, answer["Content-Range"]) == (416, "bytes */1024")
    assert answer.json()["error"]["code"] == "range_not_satisfiable"


@pytest.mark.parametrize(
    "asked", ["bytes=9-5", "bytes=a-", "bytes=", "bytes=-", "lines=1-2", "bytes=0-1,5-9", "bytes=٣-",
              "bytes=--5", "bytes=1e2-", f"bytes={'9' * 30}-"]
)  # fmt: skip
def test_what_is_no_single_range_gets_the_whole(api: Program, address: str, asked: str) -> None:
    answer = api.get(address, headers={"Range": asked})
    assert (answer.status_code, body(answer)) == (200, CONTENT)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Range": ETAG}, 206),
        ({"If-Range": f"W/{ETAG}"}, 200),
        ({"If-Range": '"another"'}, 200),
        ({"If-Range": "Sat, 28 Nov 2026 10:00:00 GMT"}, 200),
        ({"If-None-Match": ETAG}, 304),
        ({"If-None-Match": f'"another", W/{ETAG}'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"another"'}, 206),
        ({"If-Match": ETAG}, 206),
        ({"If-Match": "*"}, 206),
        ({"If-Match": '"another"'}, 412),
        ({"If-Unmodified-Since": "Sat, 28 Nov 2020 10:00:00 GMT"}, 206),
    ],
)
def test_conditions_decide_before_the_range(
    api: Program, address: str, headers: dict[str, str], status: int
) -> None:
    answer = api.get(address, headers={"Range": "bytes=1000-", **headers})
    assert (answer.status_code, answer["ETag"]) == (status, ETAG)
    expected = {200: CONTENT, 206: CONTENT[1000:], 304: b""}
    if status in expected:
        assert body(answer) == expected[status]
    assert api.head(address, headers={"Range": "bytes=1000-"})["Content-Length"] == "1024"


def test_a_browser_goes_on_too(browser: Client, address: str) -> None:
    assert body(browser.get(address, headers={"Range": "bytes=1000-"})) == CONTENT[1000:]


@pytest.fixture
def several(person: Any, data_file: DatasetFile) -> dict[str, bytes]:
    """The artifacts of a job, by path: empty, of a block's size, with a long name."""
    files = {
        "output/adapter.bin": CONTENT,
        "output/blocks.bin": bytes(1024),
        "output/empty.txt": b"",
        f"output/{'long-' * 28}name.json": b"{}",
        "log.txt": b"loss 1.25",
    }
    node = world.fake_node()
    world.job(person, training_file=data_file)
    tick()
    order = node.take_up()
    for path, content in files.items():
        assert node.upload(order, path, content).status_code == 204
    node.end(order, "succeeded")
    return files


def unpacked(archive: bytes, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    subprocess.run(["tar", "-xf", "-", "-C", str(folder)], input=archive, check=True)
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_one_archive_has_what_was_learnt_or_all_artifacts(
    api: Program, stranger: Program, browser: Client, several: dict[str, bytes], tmp_path: Path
) -> None:
    job = Job.objects.get()
    address = f"/api/jobs/{job.pk}/artifacts.tar"
    assert f'href="{address}?all=true"' in browser.get(f"/jobs/{job.pk}/").content.decode()
    answer = api.get(address)
    archive = body(answer)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/octet-stream")
    assert int(answer["Content-Length"]) == len(archive)
    learnt = {path: content for path, content in several.items() if path.startswith("output/")}
    assert unpacked(archive, tmp_path / "learnt") == learnt
    whole = api.get(f"{address}?all=true")
    assert unpacked(body(whole), tmp_path / "all") == several
    assert api.get(address, headers={"If-None-Match": answer["ETag"]}).status_code == 304
    assert api.get(f"{address}?all=true", headers={"If-None-Match": answer["ETag"]}).status_code == 200
    assert stranger.get(address).status_code == 404
    assert api.get(f"{address}?all=perhaps").status_code == 400


def test_an_archive_is_sent_from_its_files_one_after_the_other(several: dict[str, bytes]) -> None:
    members = [
        Member(one.path, file, one.bytes, one.sha256, one.at)
        for one, file in artifact_files(Job.objects.get(), outputs=False)
    ]
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there, there.makefile("rb") as reader:
        sent: list[int] = []
        box, archive = Outbox(here, sent.append), Archive(members)
        box.sendall(b"head")
        box.sendfile(cast(BinaryIO, archive), 0, archive.size)
        archive.close()
        box.sendall(b"end")
        while not box.flush():
            pass
        assert reader.read(sum(sent)) == b"head" + b"".join(Archive(members)) + b"end"
        members[1].file.unlink()
        box.sendfile(cast(BinaryIO, Archive(members)), 0, archive.size)
        with pytest.raises(FileNotFoundError, match=members[1].file.name):
            box.flush()
        box.close()


def test_an_artifact_that_the_portal_lost_is_told_as_such(api: Program, address: str) -> None:
    row = Artifact.objects.get()
    (settings.DATA_DIR / "artifacts" / row.job_id / str(row.claim_id) / row.path).unlink()
    answer = api.get(address)
    assert answer.status_code == 404
    assert "missing at the portal" in answer.json()["error"]["message"]


def test_nodes_go_on_with_inputs(client: Client, person: Any, data_file: DatasetFile) -> None:
    node = world.fake_node()
    world.job(person, training_file=data_file)
    tick()
    order = node.take_up()
    where = f"/agent/v1/claims/{order.claim}/inputs/train.jsonl?fence={order.fence}"
    ask: Ask = lambda method="get", **sent: getattr(client, method)(where, headers={**node.headers, **sent})  # noqa: E731
    whole = body(ask())
    rest = ask(Range="bytes=100-", **{"If-Range": f'"{data_file.sha256}"'})
    assert (rest.status_code, body(rest)) == (206, whole[100:])
    assert body(ask(Range="bytes=100-", **{"If-Range": '"another"'})) == whole
    assert (ask("head").status_code, ask("head")["Content-Length"]) == (200, str(len(whole)))
    assert ask("post").status_code == 405


@pytest.mark.django_db
def test_pip_goes_on_with_the_wheel(client: Client) -> None:
    token = create_join_token(actor=world.admin(), now=database_now(), uses=1)
    wheel = node_package.wheel()
    sent = {"Authorization": f"Bearer {token}", "Range": "bytes=100-"}
    answer = client.get(f"/agent/v1/packages/{wheel.name}", headers=sent)
    assert (answer.status_code, body(answer)) == (206, wheel.read_bytes()[100:])
    assert answer["ETag"] == f'"{sha256_of(wheel)}"'
