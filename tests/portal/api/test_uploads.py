"""Uploads in parts over REST: any order, resumed, checked; whose they are."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from scheduler.models import DatasetFile, Upload
from scheduler.services.files import parts
from tests.harness import world
from tests.portal.conftest import Program, token_client

CONTENT = world.training_lines(30)
CUTS = [CONTENT[:400], CONTENT[400:900], CONTENT[900:]]
WHOLE = hashlib.sha256(CONTENT).hexdigest()


def begin(api: APIClient, key: str = "", **more: Any) -> Any:
    body = {"filename": "rows.jsonl", "bytes": len(CONTENT), **more}
    return api.post("/api/uploads/", body, format="json", headers={"Idempotency-Key": key} if key else {})


def send(api: APIClient, upload: str, data: bytes, **headers: str) -> Any:
    sent = {"data": SimpleUploadedFile("upload", data)}
    return api.post(f"/api/uploads/{upload}/parts/", sent, format="multipart", headers=headers)


def complete(api: APIClient, upload: str, part_ids: list[str], **more: str) -> Any:
    return api.post(f"/api/uploads/{upload}/complete/", {"part_ids": part_ids, **more}, format="json")


def fields(answer: Any) -> tuple[int, list[str]]:
    return answer.status_code, list(answer.json()["error"]["fields"])


def test_parts_in_any_order_make_the_file_which_a_job_takes(api: Program) -> None:
    made = begin(api, "k1", sha256=WHOLE.upper())
    upload = made.json()
    assert (made.status_code, upload["state"], upload["sha256"]) == (201, "pending", WHOLE), made.content
    assert begin(api, "k1", sha256=WHOLE.upper()).json() == upload
    assert made["Location"] == f"/api/uploads/{upload['id']}/"
    sent = {n: send(api, upload["id"], CUTS[n]) for n in (2, 0)}
    held = api.get(made["Location"]).json()["parts"]
    assert [one["sha256"] for one in held] == [hashlib.sha256(CUTS[n]).hexdigest() for n in (2, 0)], (
        "where to go on"
    )
    lost = {"Idempotency-Key": "k2", "Content-SHA256": hashlib.sha256(CUTS[1]).hexdigest()}
    sent[1] = send(api, upload["id"], CUTS[1], **lost)
    assert send(api, upload["id"], CUTS[1], **lost).json() == sent[1].json()
    assert [one["id"] for one in api.get(f"/api/uploads/?state=pending&sha256={WHOLE}").json()["data"]] == [
        upload["id"]
    ]
    part_ids = [sent[n].json()["id"] for n in range(3)]
    for _ in range(2):
        done = complete(api, upload["id"], part_ids)
        assert (done.status_code, done.json()["state"]) == (200, "completed"), done.content
    file = done.json()["file"]
    assert (file["sha256"], file["rows"], file["bytes"]) == (WHOLE, 30, len(CONTENT))
    assert b"".join(api.get(f"/api/files/{file['id']}/content/")) == CONTENT
    job = api.post("/api/jobs/", {"model": "builtin/tiny-llama", "training_file": file["id"]}, format="json")
    assert job.status_code == 201, job.content
    assert DatasetFile.objects.count() == 1


def test_what_does_not_fit_is_refused_by_name_and_can_be_mended(
    api: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong, field in [
        ({"bytes": 0}, "bytes"), ({"bytes": "9"}, "bytes"), ({"sha256": "12"}, "sha256"),
        ({"filename": ""}, "filename"), ({"purpose": "fine-tune"}, "purpose"),
    ]:  # fmt: skip
        assert fields(begin(api, **wrong)) == (400, [field])
    assert begin(api, bytes=1 << 50).status_code == 413
    upload = begin(api).json()["id"]
    assert fields(send(api, upload, b"")) == (400, ["data"])
    assert fields(send(api, upload, CUTS[0], **{"Content-SHA256": "0" * 64})) == (400, ["data"])
    assert fields(send(api, upload, CUTS[0], **{"Content-SHA256": "x"})) == (400, ["Content-SHA256"])
    part_ids = [send(api, upload, data).json()["id"] for data in CUTS]
    assert fields(complete(api, upload, part_ids[:2])) == (400, ["part_ids"])
    assert fields(complete(api, upload, part_ids, sha256="0" * 64)) == (400, ["sha256"])
    assert fields(complete(api, upload, [])) == (400, ["part_ids"])
    monkeypatch.setattr(parts, "PART_BYTES", 100)
    assert send(api, upload, CUTS[0]).status_code == 413
    assert complete(api, upload, part_ids, sha256=WHOLE.upper()).status_code == 200
    assert complete(api, upload, part_ids[::-1]).status_code == 409


def test_an_upload_is_its_senders_and_ends(api: Program, stranger: Program, person: User) -> None:
    upload = begin(api).json()["id"]
    part_id = send(api, upload, CUTS[0]).json()["id"]
    team = Team.objects.create(name="Linguists")
    for member in (person, User.objects.get(username="eve")):
        Membership.objects.create(team=team, user=member)
    for other in (stranger, token_client(world.admin()), token_client(person, team=team)):
        assert other.get(f"/api/uploads/{upload}/").status_code == 404
        assert send(other, upload, CUTS[1]).status_code == 404
        assert complete(other, upload, [part_id]).status_code == 404
        assert other.delete(f"/api/uploads/{upload}/").status_code == 404
        assert other.get("/api/uploads/").json()["total"] == 0
    assert api.delete(f"/api/uploads/{upload}/").status_code == 204
    assert api.get(f"/api/uploads/{upload}/").json()["state"] == "cancelled"
    assert send(api, upload, CUTS[1]).status_code == 409
    late = begin(api).json()["id"]
    Upload.objects.filter(pk=late).update(expires_at=database_now() - timedelta(seconds=1))
    assert send(api, late, CUTS[1]).json()["error"]["state"] == "expired"
