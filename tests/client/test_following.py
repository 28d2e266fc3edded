"""A job that is followed, waited for and downloaded, while portals and lines break."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from client import foretune
from client.foretune._sync import jobs as jobs_module
from tests.client.answers import Portal, client, error, instead_of_sleep, job

BUSY, AWAY = error(503), httpx2.ConnectError("refused")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    instead_of_sleep(monkeypatch, lambda _: None)


def told(**values: Any) -> httpx2.Response:
    return httpx2.Response(200, json=job(**values), headers={"ETag": '"1"'})


def progress(step: int) -> dict[str, Any]:
    return {**job()["progress"], "step": step, "loss": 2.0}


def log(text: str, offset: int) -> httpx2.Response:
    return httpx2.Response(200, json={"text": text, "next_offset": offset})


def test_following_tells_each_change_once_and_outlasts_a_portal_that_is_away() -> None:
    waits = {"state": "queued", "wait": {"code": "busy", "text": "All GPUs are taken."}}
    portal = Portal(
        *(told(**waits), told(**waits), httpx2.Response(304), AWAY, BUSY, told()),
        *(told(progress=progress(3)), told(state="succeeded", progress=progress(20))),
    )
    kinds = [update.kind for update in portal.client.jobs.follow("ftjob-1")]
    assert kinds == ["state", "away", "away", "state", "progress", "end"]
    assert portal.asked[1].url.params["until"] == "change"
    assert 1 <= int(portal.asked[1].url.params["wait_s"]) <= 60
    assert portal.asked[1].headers["If-None-Match"] == '"1"'


def test_the_log_comes_once_whatever_breaks() -> None:
    portal = Portal(
        *(told(), log("a\n", 2), told(progress=progress(1)), AWAY, told(progress=progress(1)), log("b\n", 4)),
        *(told(state="succeeded"), log("", 4)),
    )
    followed = portal.client.jobs.follow("ftjob-1", logs=True)
    assert "".join(update.text for update in followed if update.kind == "log") == "a\nb\n"


def test_waiting_ends_with_the_job_an_error_that_stays_or_after_its_time() -> None:
    done = Portal(told(), told(state="succeeded"), told(state="succeeded"))
    assert done.client.jobs.wait("ftjob-1").state == "succeeded"
    with pytest.raises(foretune.NotFound):
        Portal(AWAY, error(404)).client.jobs.wait("ftjob-1")
    with pytest.raises(foretune.WaitedTooLong, match="goes on"):
        Portal(told()).client.jobs.wait("ftjob-1", timeout=0)
    with pytest.raises(TimeoutError):
        Portal(told()).client.jobs.wait("ftjob-1", timeout=0)


def test_a_portal_that_stays_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "AWAY_S", 0.0)
    with pytest.raises(foretune.Unreachable):
        client(lambda _: AWAY).jobs.wait("ftjob-1")


def test_a_failed_job_says_why_what_helps_and_what_it_said_last() -> None:
    failed = told(
        state="failed", error={"message": "Out of memory.", "failure_class": "resource", "code": ""}
    )
    found = {"cause": "gpu-memory", "sentence": "", "remedy": "Take a batch of 1.", "changes": {}}
    lines = "".join(f"step {number}\n" for number in range(50))
    portal = Portal(
        *(failed, failed, httpx2.Response(200, json={"failure": found})),
        *(log(lines[:100], 100), log(lines[100:], len(lines)), log("", len(lines))),
    )
    with pytest.raises(foretune.JobFailed, match=r"Out of memory. Take a batch of 1.") as raised:
        portal.client.jobs.wait("ftjob-1")
    assert (raised.value.reason, raised.value.remedy) == ("Out of memory.", "Take a batch of 1.")
    assert raised.value.log_tail.splitlines() == [f"step {number}" for number in range(30, 50)]
    cancelled = told(state="cancelled")
    nothing = httpx2.Response(200, json={"failure": None})
    with pytest.raises(foretune.JobFailed, match="cancelled"):
        Portal(cancelled, cancelled, nothing, log("", 0)).client.jobs.wait("ftjob-1")


class Artifacts:
    """A portal with one artifact, whose answers break off as often as a test wants."""

    def __init__(self, content: bytes, *, path: str = "output/adapter.bin", breaks: int = 0) -> None:
        self.content, self.path, self.breaks = content, path, breaks
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.ranges: list[str] = []
        self.client = client(self.answer)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/artifacts/"):
            row = {"path": self.path, "bytes": len(self.content), "sha256": self.sha256}
            return httpx2.Response(200, json={"data": [row]})
        if request.url.path == "/api/files/file-1/":
            file = {"id": "file-1", "filename": "rows.jsonl", "created_at": "2027-01-01T09:00:00Z"}
            return httpx2.Response(200, json={**file, "bytes": len(self.content), "sha256": self.sha256})
        asked = request.headers.get("Range", "")
        self.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-") or 0)
        rest = self.content[start:]
        if asked:
            assert request.headers["If-Range"] == f'"{self.sha256}"'
        if self.breaks:
            self.breaks -= 1
            return httpx2.Response(206 if asked else 200, stream=Broken(rest[:1000]))
        return httpx2.Response(206 if asked else 200, content=rest)


class Broken(httpx2.SyncByteStream):
    def __init__(self, content: bytes) -> None:
        self.content = content

    def __iter__(self) -> Any:
        yield self.content
        raise httpx2.ReadError("the line broke")


def test_a_download_goes_on_where_it_broke_and_is_made_once(tmp_path: Path) -> None:
    portal = Artifacts(bytes(range(256)) * 20, breaks=3)
    assert portal.client.jobs.download("ftjob-1", tmp_path) == [tmp_path / "output" / "adapter.bin"]
    assert (tmp_path / "output" / "adapter.bin").read_bytes() == portal.content
    assert [one.name for one in (tmp_path / "output").iterdir()] == ["adapter.bin"]
    assert portal.ranges == ["", "bytes=1000-", "bytes=2000-", "bytes=3000-"]
    portal.client.jobs.download("ftjob-1", tmp_path)
    assert len(portal.ranges) == 4, "what is there, whole, is not brought again"
    adapter = tmp_path / "output" / "adapter.bin"
    adapter.with_name(f"adapter.bin.{portal.sha256[:12]}.part").write_bytes(b"spoiled")
    adapter.unlink()
    portal.client.jobs.download("ftjob-1", tmp_path)
    assert adapter.read_bytes() == portal.content
    portal.breaks = 5  # each brings some more
    assert portal.client.files.download("file-1", tmp_path / "rows.jsonl").read_bytes() == portal.content
    assert portal.ranges[-1] == "bytes=5000-"


def test_what_is_not_as_its_digest_says_is_never_kept(tmp_path: Path) -> None:
    portal = Artifacts(b"adapter")
    portal.sha256 = "0" * 64
    with pytest.raises(foretune.BrokenDownload):
        portal.client.jobs.download("ftjob-1", tmp_path)
    assert list((tmp_path / "output").iterdir()) == []


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "a/../../evil", "C:\\evil", "..\\evil", ""])
def test_no_artifact_leaves_its_folder(path: str, tmp_path: Path) -> None:
    with pytest.raises(foretune.BrokenDownload, match="outside"):
        Artifacts(b"x", path=path).client.jobs.download("ftjob-1", tmp_path / "out")
    assert not (tmp_path / "evil").exists()
