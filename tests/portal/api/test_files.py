"""Uploads through REST: what is stored, and what is refused and why."""

from __future__ import annotations

import hashlib
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from scheduler.models import DatasetFile
from tests.harness import world
from tests.portal.conftest import Program, token_client

ROW = b'{"prompt": "1 + 1?", "completion": "2"}'
CHAT = b'{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}'


def upload(api: APIClient, content: bytes, name: str = "data.jsonl") -> Any:
    return api.post("/api/files/", {"file": SimpleUploadedFile(name, content)}, format="multipart")


def stored_files() -> list[Path]:
    folder = Path(settings.DATA_DIR) / "files"
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


@pytest.mark.parametrize(
    "content",
    [ROW, ROW + b"\n", b"\xef\xbb\xbf" + ROW, ROW + b"\r\n" + ROW + b"\r\n", CHAT, CHAT + b"\n" + CHAT],
)
def test_training_lines_are_accepted_as_editors_write_them(api: APIClient, content: bytes) -> None:
    answer = upload(api, content)
    assert answer.status_code == 201, answer.content
    assert answer.json()["rows"] >= 1
    assert api.get(f"/api/files/{answer.json()['id']}/").json() == answer.json()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"\xff\xfe\x00",
        b"[" + ROW + ROW + b"]",
        ROW + b"\n{",
        b"[" * 10_000_000,
        b'{"messages": [{"role": "boss", "content": "x"}]}',
        b'{"messages": []}',
        b'{"prompt": NaN, "completion": "2"}',
        b'{"prompt": "only"}',
        pickle.dumps({"prompt": "x"}),
        b"PK\x03\x04" + b"\x00" * 100,
    ],
)
def test_what_is_not_training_data_is_refused_by_line_and_leaves_nothing(
    api: APIClient, content: bytes
) -> None:
    before = stored_files()
    answer = upload(api, content)
    assert answer.status_code == 400, answer.content
    lines = answer.json()["error"]["lines"]
    assert lines
    assert len(lines) <= 20
    assert all(line["message"] for line in lines)
    assert not DatasetFile.objects.exists()
    assert stored_files() == before


def test_at_most_twenty_bad_lines_are_told(api: APIClient) -> None:
    answer = upload(api, b"\n".join([b"{bad"] * 100))
    assert len(answer.json()["error"]["lines"]) == 20


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "C:\\x\\y.jsonl", "a\nb.jsonl", "<script>.jsonl", "x" * 300]
)
def test_strange_names_are_kept_for_show_only(api: APIClient, name: str) -> None:
    answer = upload(api, ROW, name)
    assert answer.status_code == 201, answer.content
    shown = answer.json()["filename"]
    assert "/" not in shown
    assert shown.isprintable()
    assert all(len(path.name) == 64 for path in stored_files())


def test_a_file_over_the_limit_is_413(api: APIClient, settings: Any) -> None:
    settings.MAX_UPLOAD_BYTES = 1000
    answer = upload(api, ROW * 10_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert upload(api, b"\n".join([ROW] * 30)).status_code == 413
    assert not DatasetFile.objects.exists()


def test_other_fields_and_a_missing_file_are_named(api: APIClient) -> None:
    extra = api.post(
        "/api/files/", {"owner": "eve", "file": SimpleUploadedFile("a", ROW)}, format="multipart"
    )
    assert (extra.status_code, list(extra.json()["error"]["fields"])) == (400, ["owner"])
    none = api.post("/api/files/", {}, format="multipart")
    assert (none.status_code, list(none.json()["error"]["fields"])) == (400, ["file"])
    text = api.post("/api/files/", {"file": "text"}, format="multipart")
    assert (text.status_code, list(text.json()["error"]["fields"])) == (400, ["file"])


def test_json_is_not_an_upload(api: APIClient) -> None:
    assert api.post("/api/files/", {"file": "x"}, format="json").status_code == 415


def test_a_broken_multipart_body_is_400(api: APIClient) -> None:
    broken = api.post("/api/files/", b"--x\r\nnonsense", content_type="multipart/form-data; boundary=y y")
    assert broken.status_code == 400
    cut = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + ROW
    assert api.post("/api/files/", cut, content_type="multipart/form-data").status_code == 400


def test_files_are_listed_newest_first(api: APIClient, person: object) -> None:
    ids = [upload(api, world.training_lines(n)).json()["id"] for n in (1, 2)]
    assert [file["id"] for file in api.get("/api/files/").json()["data"]] == ids[::-1]


def test_the_same_upload_under_one_key_is_one_file_and_another_is_refused(api: APIClient) -> None:
    def send(content: bytes) -> Any:
        file = SimpleUploadedFile("data.jsonl", content)
        return api.post("/api/files/", {"file": file}, format="multipart", headers={"Idempotency-Key": "k1"})

    first, again = send(ROW), send(ROW)
    assert (first.status_code, again.json()) == (201, first.json())
    assert send(CHAT).json()["error"]["code"] == "key_reused"
    assert DatasetFile.objects.count() == 1
    assert send(ROW).status_code == 201


def test_a_refused_upload_does_not_use_its_key_up(api: APIClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    for content, status in ((b"{bad", 400), (ROW, 201)):
        file = SimpleUploadedFile("data.jsonl", content)
        answer = api.post("/api/files/", {"file": file}, format="multipart", headers=headers)
        assert answer.status_code == status


def test_an_array_is_taken_like_lines(api: APIClient) -> None:
    answer = upload(api, b"[\n  " + ROW + b",\n  " + ROW + b"\n]\n", "data.json")
    assert (answer.status_code, answer.json()["rows"]) == (201, 2)
    refused = upload(api, b"[\n" + ROW + b",\n{}]")
    (line,) = refused.json()["error"]["lines"]
    assert (line["line"], line["message"][:19]) == (3, "row 2 of the array ")


def test_fields_that_are_not_used_are_named(api: APIClient) -> None:
    row = b'{"instruction": "add", "input": "1 + 1", "output": "2", "id": 7, "source": "mine"}'
    assert upload(api, row).json()["unused_fields"] == ["id", "source"]
    assert upload(api, ROW).json()["unused_fields"] == []


def known(api: APIClient, content: bytes, body: bytes = b"", **headers: str) -> Any:
    """Ask by the digest of the content, with a body that would be refused if it was read."""
    digest = hashlib.sha256(content).hexdigest()
    return api.post(
        "/api/files/", body, content_type="multipart/form-data", headers={"Content-SHA256": digest, **headers}
    )


def test_a_file_that_one_has_is_found_by_its_digest_and_not_read(
    api: Program, stranger: Program, person: User
) -> None:
    assert known(api, ROW).status_code == 400, "there is none yet: send it"
    first = upload(api, ROW).json()
    stored = stored_files()
    for body in (b"", b"--x\r\nnonsense"):
        again = known(api, ROW, body)
        assert (again.status_code, again.json()) == (200, first)
    assert known(api, ROW, **{"Idempotency-Key": "k1"}).status_code == 200
    assert known(stranger, ROW).status_code == 400, "nobody gets by a digest what is another's"
    assert stranger.get(f"/api/files/?sha256={first['sha256']}").json()["total"] == 0
    assert known(token_client(world.admin()), ROW).status_code == 400, "nor does an administrator"
    theirs = upload(stranger, ROW).json()
    assert (theirs["id"] != first["id"], theirs["owner"]["name"]) == (True, "eve")
    assert (DatasetFile.objects.count(), stored_files()) == (2, stored)
    team = Team.objects.create(name="Linguists")
    Membership.objects.create(team=team, user=person)
    bound = token_client(person, team=team)
    assert known(bound, ROW).status_code == 400, "a token of a team reaches that team's alone"
    DatasetFile.objects.filter(pk=theirs["id"]).update(team=team)
    assert known(bound, ROW).json()["id"] == theirs["id"]
    DatasetFile.objects.filter(pk=first["id"]).update(expires_at=database_now() + timedelta(hours=1))
    assert known(api, ROW).json()["id"] == theirs["id"], "not one that goes soon"
    DatasetFile.objects.filter(pk=theirs["id"]).update(deleted_at=database_now())
    assert known(api, ROW).status_code == 400


def test_what_arrives_has_the_digest_that_was_said(api: Program) -> None:
    for digest, status in (("A" * 64, 400), ("12", 400), (hashlib.sha256(ROW).hexdigest().upper(), 201)):
        file = SimpleUploadedFile("data.jsonl", ROW)
        answer = api.post(
            "/api/files/", {"file": file}, format="multipart", headers={"Content-SHA256": digest}
        )
        assert answer.status_code == status, answer.content
        if status == 400:
            assert list(answer.json()["error"]["fields"]) == ["Content-SHA256"]
    assert answer["Location"] == f"/api/files/{answer.json()['id']}/"


def test_files_are_found_by_name_text_and_digest_and_ordered(api: Program) -> None:
    made = {
        name: upload(api, world.training_lines(n), name).json()
        for n, name in enumerate(("b.jsonl", "a.jsonl"), 1)
    }

    def names(query: str) -> list[str]:
        answer = api.get(f"/api/files/?{query}")
        assert answer.status_code == 200, answer.content
        return [file["filename"] for file in answer.json()["data"]]

    assert names("order=name") == names("order=-bytes") == ["a.jsonl", "b.jsonl"]
    sha256 = made["a.jsonl"]["sha256"]
    assert names("name=a.jsonl") == names(f"sha256={sha256}") == ["a.jsonl"]
    assert names(f"sha256={sha256.upper()}") == ["a.jsonl"]
    assert names("text=JSONL&order=created_at") == ["b.jsonl", "a.jsonl"]
    assert names("name=jsonl") == []
    page = api.get("/api/files/?order=name&limit=1").json()
    assert names(f"order=name&after={page['next']}") == ["b.jsonl"]
    assert api.get(f"/api/files/?order=bytes&after={page['next']}").status_code == 400
    assert api.get(f"/api/files/?order=name&after={page['next'][:-1]}").status_code == 400
    refused = api.get("/api/files/?sha256=&colour=red")
    assert set(refused.json()["error"]["fields"]) == {"sha256", "colour"}


def test_a_list_ordered_by_name_goes_on_after_the_longest_names_of_any_script(api: Program) -> None:
    long = ["".join(chr(first + 7 * n % 600) for n in range(220)) for first in (0x4E00, 0x20000)]
    long.append("a" * 249)
    for n, name in enumerate(long, 1):
        upload(api, world.training_lines(n), name)
    seen, after = list[str](), ""
    while after is not None:
        answer = api.get("/api/files/", {"order": "name", "limit": 1, **({"after": after} if after else {})})
        seen.append(answer.json()["data"][0]["filename"])
        after = answer.json()["next"]
    assert sorted(seen) == sorted(long)


def test_content_comes_whole_or_in_part_for_owner_and_team(
    api: Program, stranger: Program, person: User
) -> None:
    file = upload(api, ROW).json()
    address = f"/api/files/{file['id']}/content/"
    whole = api.get(address, headers={"Accept": "text/csv"})
    assert (b"".join(whole), whole["ETag"]) == (ROW, f'"{file["sha256"]}"')
    part = api.get(address, headers={"Range": "bytes=3-9"})
    assert (part.status_code, b"".join(part)) == (206, ROW[3:10])
    assert api.get(address, headers={"Range": "bytes=999-"}).status_code == 416
    assert api.get(address, headers={"If-None-Match": whole["ETag"]}).status_code == 304
    assert stranger.get(address).status_code == 404
    team = Team.objects.create(name="Linguists")
    for member in (person, User.objects.get(username="eve")):
        Membership.objects.create(team=team, user=member)
    DatasetFile.objects.update(team=team)
    assert b"".join(stranger.get(address)) == ROW
    (path,) = [path for path in stored_files() if path.name == file["sha256"]]
    path.unlink()
    lost = api.get(address)
    assert (lost.status_code, lost.json()["error"]["code"]) == (404, "not_found")
