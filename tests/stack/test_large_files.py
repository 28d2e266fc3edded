"""A file larger than a part, sent to a live portal through both doors."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client.foretune import Client
from scheduler.models import DatasetFile
from scheduler.services.files.parts import PART_BYTES
from tests.harness.stack import Stack

pytestmark = pytest.mark.slow
ROWS = 180_000


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.jsonl"
    with path.open("w") as out:
        for row in range(ROWS):
            out.write(f'{{"text": "{row:09d} {"some words of a row " * 20}"}}\n')
    assert PART_BYTES < path.stat().st_size < 2 * PART_BYTES
    return path


def test_a_large_file_goes_through_both_doors(judged: Stack, large: Path) -> None:
    content = large.read_bytes()
    sha256, before = hashlib.sha256(content).hexdigest(), DatasetFile.objects.using(judged.alias).count()
    headers = {"Authorization": f"Bearer {judged.token}"}
    with httpx2.Client(base_url=judged.url, headers=headers, timeout=600, trust_env=False) as http:

        def ask(address: str, **sent: Any) -> Any:
            answer = http.post(address, **sent)
            assert answer.is_success, answer.text
            return answer.json()

        told = {"filename": "v1.jsonl", "bytes": len(content), "purpose": "fine-tune"}
        upload = ask("/v1/uploads", json=told)["id"]
        cuts = [content[PART_BYTES:], content[:PART_BYTES]]
        parts = [ask(f"/v1/uploads/{upload}/parts", files={"data": cut})["id"] for cut in cuts][::-1]
        file = ask(f"/v1/uploads/{upload}/complete", json={"part_ids": parts})["file"]
        assert (file["portal"]["sha256"], file["portal"]["rows"]) == (sha256, ROWS)
        assert http.delete(f"/v1/files/{file['id']}").is_success
        refused = http.post("/api/files/", headers={"Content-SHA256": sha256})
        assert refused.status_code == 400, "it is deleted"
        ft = Client(judged.url, judged.token)
        kept = ft.files.upload(large)
        assert (kept.sha256, kept.rows, kept.bytes) == (sha256, ROWS, len(content))
        assert ft.files.upload(large) == kept
        assert ask("/api/files/", headers={"Content-SHA256": sha256})["id"] == kept.id
        tail = http.get(f"/api/files/{kept.id}/content/", headers={"Range": f"bytes={PART_BYTES}-"})
        assert (tail.status_code, tail.content) == (206, content[PART_BYTES:])
        assert ft.files.content(kept) == content
        assert DatasetFile.objects.using(judged.alias).count() == before + 2, "one of them deleted"
        assert http.delete(f"/api/files/{kept.id}/").status_code == 204
