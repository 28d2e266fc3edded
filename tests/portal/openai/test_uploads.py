"""Uploads in parts: any order, again, digests, ends; and what they may take."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from portal.clock import database_now
from scheduler.loop.sweeps import sweep
from scheduler.models import DatasetFile, Upload
from scheduler.selectors.files import storage_of
from tests.harness import world

pytestmark = pytest.mark.django_db
CONTENT = world.training_lines(30)
CUTS = [CONTENT[:400], CONTENT[400:900], CONTENT[900:]]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    parts = Path(settings.DATA_DIR) / "parts"
    before = {*parts.glob("*/*")}
    yield
    assert not {*parts.glob("*/*")} - before or Upload.objects.filter(state="pending").exists()


def begin(api: APIClient, size: int = len(CONTENT), **more: Any) -> Any:
    body = {
        "purpose": "fine-tune",
        "filename": "rows.jsonl",
        "bytes": size,
        "mime_type": "text/jsonl",
        **more,
    }
    return api.post("/v1/uploads", body, format="json")


def part(api: APIClient, upload: str, data: bytes) -> Any:
    sent = {"data": SimpleUploadedFile("upload", data)}
    return api.post(f"/v1/uploads/{upload}/parts", sent, format="multipart")


def complete(api: APIClient, upload: str, parts: list[str], **more: str) -> Any:
    return api.post(f"/v1/uploads/{upload}/complete", {"part_ids": parts, **more}, format="json")


def parts_of(api: APIClient, upload: str) -> list[str]:
    """Sent last first, as a client with several connections might."""
    return [part(api, upload, data).json()["id"] for data in reversed(CUTS)][::-1]


def test_parts_in_any_order_make_the_file(api: APIClient, person: Any) -> None:
    after = {"anchor": "created_at", "seconds": 3600}
    upload = begin(api, expires_after=after).json()
    assert (upload["object"], upload["status"], upload["file"]) == ("upload", "pending", None)
    assert upload["expires_at"] - upload["created_at"] == 24 * 3600
    assert storage_of(person).used_bytes == len(CONTENT)
    parts = parts_of(api, upload["id"])
    resumed = api.get(f"/v1/uploads/{upload['id']}").json()["portal"]["parts"]
    assert {one["id"] for one in resumed} == set(parts)
    md5, sha256 = hashlib.md5(CONTENT).hexdigest(), hashlib.sha256(CONTENT).hexdigest()
    done = complete(api, upload["id"], parts, md5=md5, sha256=sha256.upper())
    assert done.status_code == 200, done.content
    file = done.json()["file"]
    assert (done.json()["status"], file["filename"], file["bytes"]) == (
        "completed",
        "rows.jsonl",
        len(CONTENT),
    )
    assert file["portal"] == {
        "rows": 30,
        "format": "prompt_completion",
        "unused_fields": [],
        "sha256": sha256,
    }
    assert file["expires_at"] > file["created_at"]
    content = api.get(f"/v1/files/{file['id']}/content")
    assert b"".join(content.streaming_content) == CONTENT
    assert complete(api, upload["id"], parts, md5=md5).json() == done.json()  # as after a lost answer
    assert storage_of(person).used_bytes == len(CONTENT)
    assert part(api, upload["id"], b"x").status_code == 400
    assert api.post(f"/v1/uploads/{upload['id']}/cancel").status_code == 400


def test_what_does_not_fit_together_is_refused_and_can_be_mended(api: APIClient) -> None:
    upload = begin(api).json()["id"]
    first, second, third = parts_of(api, upload)
    wrong: list[tuple[list[str], dict[str, str], str]] = [
        ([first, second], {}, "part_ids"),
        ([first, second, third, "part_none"], {}, "part_ids"),
        ([first, first, third], {}, "part_ids"),
        ([first, second, third], {"md5": "0" * 32}, "md5"),
        ([first, second, third], {"sha256": "0" * 64}, "sha256"),
        ([first, second, third], {"md5": "x"}, "md5"),
        ([], {}, "part_ids"),
    ]
    for parts, more, param in wrong:
        error = complete(api, upload, parts, **more).json()["error"]
        assert error["param"] == param, error
    assert not DatasetFile.objects.exists()
    assert complete(api, upload, [third, first, second]).json()["error"]["code"] == "invalid_file"
    assert complete(api, upload, [first, second, third]).json()["status"] == "completed"


def test_an_upload_is_cancelled_or_ends_after_a_day(api: APIClient, person: Any) -> None:
    first, second = begin(api).json()["id"], begin(api).json()["id"]
    for upload in (first, second):
        assert part(api, upload, CUTS[0]).status_code == 200
    assert api.post(f"/v1/uploads/{first}/cancel").json()["status"] == "cancelled"
    assert api.post(f"/v1/uploads/{first}/cancel").json()["status"] == "cancelled"
    Upload.objects.filter(pk=second).update(expires_at=database_now() - timedelta(seconds=1))
    assert part(api, second, CUTS[1]).json()["error"]["message"].startswith("The upload is expired")
    sweep(database_now())
    assert api.get(f"/v1/uploads/{second}").json()["status"] == "expired"
    assert storage_of(person).used_bytes == 0
    assert not [*(Path(settings.DATA_DIR) / "parts").glob("*")]


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"bytes": 0}, "bytes"),
        ({"bytes": True}, "bytes"),
        ({"purpose": "batch"}, "purpose"),
        ({"filename": ""}, "filename"),
        ({"expires_after": {"anchor": "created_at", "seconds": 5}}, "expires_after.seconds"),
        ({"expires_after": {"seconds": 5000}}, "expires_after.anchor"),
    ],
)
def test_a_wrong_beginning_is_refused(api: APIClient, wrong: dict[str, Any], param: str) -> None:
    answer = begin(api, **wrong) if "bytes" not in wrong else begin(api, wrong["bytes"])
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert not Upload.objects.exists()


def test_sizes_are_bounded(api: APIClient, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.services.files.parts.PART_BYTES", 500)
    upload = begin(api, 600).json()["id"]
    assert part(api, upload, b"x" * 501).status_code == 413
    assert part(api, upload, b"").status_code == 400
    assert part(api, upload, b"x" * 500).status_code == 200
    assert part(api, upload, b"x" * 500).status_code == 200  # sent again after a lost answer
    assert part(api, upload, b"x" * 500).status_code == 400
    settings.MAX_UPLOAD_BYTES = 100
    assert begin(api, 101).status_code == 413


def test_uploads_belong_to_their_sender(api: APIClient, stranger: APIClient) -> None:
    upload = begin(api).json()["id"]
    assert part(stranger, upload, b"x").status_code == 404
    assert stranger.get(f"/v1/uploads/{upload}").status_code == 404
    assert complete(stranger, upload, ["x"]).status_code == 404


def test_a_file_past_its_time_is_deleted_once_no_job_needs_it(api: APIClient, person: Any) -> None:
    file = world.data_file(person)
    DatasetFile.objects.filter(pk=file.pk).update(expires_at=database_now())
    job = world.job(person, training_file=file)
    sweep(database_now())
    assert api.get(f"/v1/files/{file.pk}").status_code == 200
    api.post(f"/v1/fine_tuning/jobs/{job.pk}/cancel")
    sweep(database_now())
    assert api.get(f"/v1/files/{file.pk}").status_code == 404
