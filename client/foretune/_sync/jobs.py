# Made from _async/ by client/sync_half.py.
"""Jobs: submitted, followed, waited for, downloaded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from .. import _http
from .._errors import (
    ForetuneError,
    JobFailed,
    NotFound,
    Unavailable,
    Unreachable,
    WaitedTooLong,
)
from .._files import place_of
from .._models import Artifact, Explanation, File, JobFields, Plan, Record, Rows, Update
from .downloads import bring
from .files import id_of
from .transport import Transport

WAIT_S = 25  # of one question; proxies end longer ones
LOG_WAIT_S = 3  # where lines of the log are wanted, which do not change the job
AT_LEAST_S, WITHOUT_NEWS_S = 0.5, 1.0  # between two questions
AWAY_S = 600.0  # so long a portal that is followed may be away
TAIL_LINES = 20


@dataclass(frozen=True, kw_only=True, repr=False)
class Job(JobFields):
    """A job as it was when it was read; its methods ask the portal."""

    jobs: Jobs = field(repr=False, compare=False)

    def refresh(self) -> Job:
        return self.jobs.get(self.id)

    def follow(self, *, logs: bool = False, timeout: float | None = None) -> Iterator[Update]:
        """What happens to it, until it has ended (see Jobs.follow)."""
        return self.jobs.follow(self, logs=logs, timeout=timeout)

    def wait(self, timeout: float | None = None) -> Job:
        """The job when it has succeeded.

        timeout: in seconds. Raises JobFailed if it ended otherwise, WaitedTooLong.
        """
        return self.jobs.wait(self, timeout=timeout)

    def cancel(self, reason: str = "") -> Job:
        return self.jobs.act(self, "cancel", reason=reason)

    def pause(self) -> Job:
        return self.jobs.act(self, "pause")

    def resume(self) -> Job:
        return self.jobs.act(self, "resume")

    def metrics(self, **options: Any) -> Rows:
        """What was measured, by step.

        options: `points` thins the rows, `attempt` chooses one.
        """
        return self.jobs.metrics(self, **options)

    def log(self) -> str:
        """The whole log."""
        return "".join([piece for piece in self.jobs.log_pieces(self)])

    def artifacts(self) -> Sequence[Artifact]:
        return self.jobs.artifacts(self)

    def download(self, folder: str | Path) -> Sequence[Path]:
        """Bring all files that it produced into a folder (see Jobs.download)."""
        return self.jobs.download(self, folder)


class Jobs:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def submit(self, plan: Plan | None = None, *, key: str = "", **fields: Any) -> Job:
        """Submit a plan, or fields: `model`, `training_file` (a File or its id), ...

        key: an Idempotency-Key; without one a new one is made and kept over all tries.
        Raises PlanOutdated where what a plan promised holds no more.
        """
        if plan is not None and not isinstance(plan, Plan):
            raise TypeError("submit takes a Plan of recommend(), or the fields of a job by name")
        planned = ({"plan": plan.plan} if plan.plan else plan.fields) if plan else {}
        body = {**planned, **_with_ids(fields)}
        return self._job(self._transport.json("POST", "jobs/", json=body, key=key or _http.new_key()))

    def submit_array(
        self, values: Sequence[Mapping[str, Any]], *, key: str = "", **fields: Any
    ) -> Record:
        """Submit a job for each of these parameters, all or none.

        fields: as for one job, and `limit`.
        """
        body = {**_with_ids(fields), "values": [dict(one) for one in values]}
        return Record.parse(
            self._transport.json("POST", "arrays/", json=body, key=key or _http.new_key())
        )

    def list(self, **filters: Any) -> Iterator[Job]:
        """Jobs that you may see, newest first.

        filters: as the API has them, e.g. `state`, `owner`.
        """
        for row in self._transport.pages("jobs/", filters):
            yield self._job(row)

    def get(self, job: JobFields | str) -> Job:
        return self._job(self._transport.json("GET", f"jobs/{id_of(job)}/"))

    def find(self, name: str) -> Job:
        """The one with this id or, if only one has it, this name.

        Raises NotFound and ForetuneError.
        """
        if name.startswith("ftjob-"):
            return self.get(name)
        named = [job for job in self.list(name=name)]
        if len(named) > 1:
            raise ForetuneError(f"{len(named)} jobs are called {name}: {', '.join(one.id for one in named)}.")
        if not named:
            raise NotFound(f"There is no job {name} that you see.", code="not_found", status=404)
        return self.get(named[0])

    def act(self, job: JobFields | str, verb: str, **body: Any) -> Job:
        """cancel, pause or resume: the job as it is then.

        Nothing happens to one that is so already.
        """
        given = {name: value for name, value in body.items() if value}
        answer = self._transport.json("POST", f"jobs/{id_of(job)}/{verb}/", json=given, harmless=True)
        return self._job(answer)

    def follow(
        self, job: JobFields | str, *, logs: bool = False, timeout: float | None = None
    ) -> Iterator[Update]:
        """What happens to a job from now on, the last update of the kind `end`.

        A portal that is away for some minutes, and broken connections, end nothing: that is an update, too.
        logs: also lines of the log. timeout: in seconds. Raises WaitedTooLong, Unreachable.
        """
        identity, etag, offset = id_of(job), "", 0
        began = time.monotonic()
        latest: Job | None = None
        away_since: float | None = None
        while True:
            asked_at = time.monotonic()
            if timeout is not None and asked_at - began > timeout:
                raise WaitedTooLong(f"Job {identity} has not ended after {timeout:g} s; it goes on.")
            try:
                wait_s = LOG_WAIT_S if logs else WAIT_S
                if timeout is not None:
                    wait_s = max(1, min(wait_s, int(began + timeout - asked_at)))
                before, (latest, etag) = latest, self._changed(identity, latest, etag, wait_s)
                piece, offset = self._log_since(identity, offset) if logs else ("", offset)
            except (Unreachable, Unavailable) as trouble:
                away_since = asked_at if away_since is None else away_since
                if asked_at - away_since > AWAY_S:
                    raise
                if latest is not None:
                    yield Update("away", latest, str(trouble))
                time.sleep(1.0)
                continue
            away_since = None
            if piece:
                yield Update("log", latest, piece)
            if latest.ended:
                yield Update("end", latest)
                return
            if kind := _news(before, latest):
                yield Update(kind, latest)
            # A portal with many waiting requests answers at once.
            pause_s = AT_LEAST_S if kind else WITHOUT_NEWS_S
            time.sleep(max(0.0, pause_s - (time.monotonic() - asked_at)))

    def wait(self, job: JobFields | str, *, timeout: float | None = None) -> Job:
        """The job when it has succeeded.

        Raises JobFailed if it ended otherwise, WaitedTooLong.
        """
        for _ in self.follow(job, timeout=timeout):
            pass
        ended = self.get(job)
        if ended.state != "succeeded":
            raise self.failure(ended)
        return ended

    def failure(self, job: JobFields) -> JobFailed:
        """Why an ended job did not succeed, as an exception."""
        found = (self._transport.json("GET", f"jobs/{job.id}/failure/"))["failure"]
        explained = Explanation.parse(found) if found else None
        reason = job.error.message if job.error else f"It was {job.state}."
        tail = "".join([line for line in self.tail(job, TAIL_LINES)])
        return JobFailed(job, reason=reason, remedy=explained.remedy if explained else "", log_tail=tail)

    def tail(self, job: JobFields | str, lines: int) -> Iterator[str]:
        """The last lines of the log."""
        kept: deque[str] = deque(maxlen=lines)
        rest = ""
        for piece in self.log_pieces(job):
            *whole, rest = (rest + piece).split("\n")
            kept.extend(f"{line}\n" for line in whole)
        if rest:
            kept.append(rest)
        for line in kept:
            yield line

    def log_pieces(self, job: JobFields | str, offset: int = 0) -> Iterator[str]:
        """The log from a character on, piece by piece."""
        while True:
            piece, offset = self._log_since(id_of(job), offset)
            if not piece:
                return
            yield piece

    def metrics(self, job: JobFields | str, **options: Any) -> Rows:
        rows = self._transport.pages(f"jobs/{id_of(job)}/metrics/", options)
        return Rows([row for row in rows])

    def artifacts(self, job: JobFields | str) -> Sequence[Artifact]:
        rows = (self._transport.json("GET", f"jobs/{id_of(job)}/artifacts/"))["data"]
        return [Artifact.parse(row) for row in rows]

    def download(self, job: JobFields | str, folder: str | Path) -> Sequence[Path]:
        """Bring all files that a job produced into a folder; returns their paths.

        What is there already, whole, is kept, and what broke off goes on where it did. Each file appears
        under its name only when its digest is right. Raises BrokenDownload.
        """
        paths = []
        for artifact in self.artifacts(job):
            path = place_of(Path(folder), artifact.path)
            address = f"jobs/{id_of(job)}/artifacts/{artifact.path}"
            bring(self._transport, address, path, sha256=artifact.sha256, size=artifact.bytes)
            paths.append(path)
        return paths

    def _changed(
        self, identity: str, latest: Job | None, etag: str, wait_s: int
    ) -> tuple[Job, str]:
        """The job, as soon as it is not as `etag` says, or after a while."""
        if latest is None:
            response = self._transport.request("GET", f"jobs/{identity}/", tries=1)
        else:
            response = self._transport.request(
                "GET",
                f"jobs/{identity}/",
                query={"wait_s": wait_s, "until": "change"},
                headers={"If-None-Match": etag} if etag else None,
                tries=1,
            )
            if response.status_code == httpx2.codes.NOT_MODIFIED:
                return latest, etag
        return self._job(_http.content_of(response)), response.headers.get("ETag", "")

    def _log_since(self, identity: str, offset: int) -> tuple[str, int]:
        answer = self._transport.json(
            "GET", f"jobs/{identity}/logs/", query={"offset": offset}, tries=1
        )
        return str(answer["text"]), int(answer["next_offset"])

    def _job(self, raw: Mapping[str, Any]) -> Job:
        return Job.parse(raw, jobs=self)


def _news(before: JobFields | None, now: JobFields) -> str:
    """The kind of what changed; empty where nothing that is told did."""
    if before is None or (before.state, before.stage, before.waiting) != (now.state, now.stage, now.waiting):
        return "state"
    if (before.progress, before.expected) != (now.progress, now.expected):
        return "progress"
    return ""


def _with_ids(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Files as their ids, moments as text."""
    return {name: _sent(value) for name, value in fields.items()}


def _sent(value: Any) -> Any:
    if isinstance(value, File):
        return value.id
    return value.isoformat() if hasattr(value, "isoformat") else value
