"""Jobs: submitted, followed, waited for, downloaded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
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
from .transport import AsyncTransport

WAIT_S = 25  # of one question; proxies end longer ones
LOG_WAIT_S = 3  # where lines of the log are wanted, which do not change the job
AT_LEAST_S, WITHOUT_NEWS_S = 0.5, 1.0  # between two questions
AWAY_S = 600.0  # so long a portal that is followed may be away
TAIL_LINES = 20


@dataclass(frozen=True, kw_only=True, repr=False)
class AsyncJob(JobFields):
    """A job as it was when it was read; its methods ask the portal."""

    jobs: AsyncJobs = field(repr=False, compare=False)

    async def refresh(self) -> AsyncJob:
        return await self.jobs.get(self.id)

    def follow(self, *, logs: bool = False, timeout: float | None = None) -> AsyncIterator[Update]:
        """What happens to it, until it has ended (see AsyncJobs.follow)."""
        return self.jobs.follow(self, logs=logs, timeout=timeout)

    async def wait(self, timeout: float | None = None) -> AsyncJob:
        """The job when it has succeeded.

        timeout: in seconds. Raises JobFailed if it ended otherwise, WaitedTooLong.
        """
        return await self.jobs.wait(self, timeout=timeout)

    async def cancel(self, reason: str = "") -> AsyncJob:
        return await self.jobs.act(self, "cancel", reason=reason)

    async def pause(self) -> AsyncJob:
        return await self.jobs.act(self, "pause")

    async def resume(self) -> AsyncJob:
        return await self.jobs.act(self, "resume")

    async def metrics(self, **options: Any) -> Rows:
        """What was measured, by step.

        options: `points` thins the rows, `attempt` chooses one.
        """
        return await self.jobs.metrics(self, **options)

    async def log(self) -> str:
        """The whole log."""
        return "".join([piece async for piece in self.jobs.log_pieces(self)])

    async def artifacts(self) -> Sequence[Artifact]:
        return await self.jobs.artifacts(self)

    async def download(self, folder: str | Path) -> Sequence[Path]:
        """Bring all files that it produced into a folder (see AsyncJobs.download)."""
        return await self.jobs.download(self, folder)


class AsyncJobs:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def submit(self, plan: Plan | None = None, *, key: str = "", **fields: Any) -> AsyncJob:
        """Submit a plan, or fields: `model`, `training_file` (a File or its id), ...

        key: an Idempotency-Key; without one a new one is made and kept over all tries.
        Raises PlanOutdated where what a plan promised holds no more.
        """
        if plan is not None and not isinstance(plan, Plan):
            raise TypeError("submit takes a Plan of recommend(), or the fields of a job by name")
        planned = ({"plan": plan.plan} if plan.plan else plan.fields) if plan else {}
        body = {**planned, **_with_ids(fields)}
        return self._job(await self._transport.json("POST", "jobs/", json=body, key=key or _http.new_key()))

    async def submit_array(
        self, values: Sequence[Mapping[str, Any]], *, key: str = "", **fields: Any
    ) -> Record:
        """Submit a job for each of these parameters, all or none.

        fields: as for one job, and `limit`.
        """
        body = {**_with_ids(fields), "values": [dict(one) for one in values]}
        return Record.parse(
            await self._transport.json("POST", "arrays/", json=body, key=key or _http.new_key())
        )

    async def list(self, **filters: Any) -> AsyncIterator[AsyncJob]:
        """Jobs that you may see, newest first.

        filters: as the API has them, e.g. `state`, `owner`.
        """
        async for row in self._transport.pages("jobs/", filters):
            yield self._job(row)

    async def get(self, job: JobFields | str) -> AsyncJob:
        return self._job(await self._transport.json("GET", f"jobs/{id_of(job)}/"))

    async def find(self, name: str) -> AsyncJob:
        """The one with this id or, if only one has it, this name.

        Raises NotFound and ForetuneError.
        """
        if name.startswith("ftjob-"):
            return await self.get(name)
        named = [job async for job in self.list(name=name)]
        if len(named) > 1:
            raise ForetuneError(f"{len(named)} jobs are called {name}: {', '.join(one.id for one in named)}.")
        if not named:
            raise NotFound(f"There is no job {name} that you see.", code="not_found", status=404)
        return await self.get(named[0])

    async def act(self, job: JobFields | str, verb: str, **body: Any) -> AsyncJob:
        """cancel, pause or resume: the job as it is then.

        Nothing happens to one that is so already.
        """
        given = {name: value for name, value in body.items() if value}
        answer = await self._transport.json("POST", f"jobs/{id_of(job)}/{verb}/", json=given, harmless=True)
        return self._job(answer)

    async def follow(
        self, job: JobFields | str, *, logs: bool = False, timeout: float | None = None
    ) -> AsyncIterator[Update]:
        """What happens to a job from now on, the last update of the kind `end`.

        A portal that is away for some minutes, and broken connections, end nothing: that is an update, too.
        logs: also lines of the log. timeout: in seconds. Raises WaitedTooLong, Unreachable.
        """
        identity, etag, offset = id_of(job), "", 0
        began = time.monotonic()
        latest: AsyncJob | None = None
        away_since: float | None = None
        while True:
            asked_at = time.monotonic()
            if timeout is not None and asked_at - began > timeout:
                raise WaitedTooLong(f"Job {identity} has not ended after {timeout:g} s; it goes on.")
            try:
                wait_s = LOG_WAIT_S if logs else WAIT_S
                if timeout is not None:
                    wait_s = max(1, min(wait_s, int(began + timeout - asked_at)))
                before, (latest, etag) = latest, await self._changed(identity, latest, etag, wait_s)
                piece, offset = await self._log_since(identity, offset) if logs else ("", offset)
            except (Unreachable, Unavailable) as trouble:
                away_since = asked_at if away_since is None else away_since
                if asked_at - away_since > AWAY_S:
                    raise
                if latest is not None:
                    yield Update("away", latest, str(trouble))
                await anyio.sleep(1.0)
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
            await anyio.sleep(max(0.0, pause_s - (time.monotonic() - asked_at)))

    async def wait(self, job: JobFields | str, *, timeout: float | None = None) -> AsyncJob:
        """The job when it has succeeded.

        Raises JobFailed if it ended otherwise, WaitedTooLong.
        """
        async for _ in self.follow(job, timeout=timeout):
            pass
        ended = await self.get(job)
        if ended.state != "succeeded":
            raise await self.failure(ended)
        return ended

    async def failure(self, job: JobFields) -> JobFailed:
        """Why an ended job did not succeed, as an exception."""
        found = (await self._transport.json("GET", f"jobs/{job.id}/failure/"))["failure"]
        explained = Explanation.parse(found) if found else None
        reason = job.error.message if job.error else f"It was {job.state}."
        tail = "".join([line async for line in self.tail(job, TAIL_LINES)])
        return JobFailed(job, reason=reason, remedy=explained.remedy if explained else "", log_tail=tail)

    async def tail(self, job: JobFields | str, lines: int) -> AsyncIterator[str]:
        """The last lines of the log."""
        kept: deque[str] = deque(maxlen=lines)
        rest = ""
        async for piece in self.log_pieces(job):
            *whole, rest = (rest + piece).split("\n")
            kept.extend(f"{line}\n" for line in whole)
        if rest:
            kept.append(rest)
        for line in kept:
            yield line

    async def log_pieces(self, job: JobFields | str, offset: int = 0) -> AsyncIterator[str]:
        """The log from a character on, piece by piece."""
        while True:
            piece, offset = await self._log_since(id_of(job), offset)
            if not piece:
                return
            yield piece

    async def metrics(self, job: JobFields | str, **options: Any) -> Rows:
        rows = self._transport.pages(f"jobs/{id_of(job)}/metrics/", options)
        return Rows([row async for row in rows])

    async def artifacts(self, job: JobFields | str) -> Sequence[Artifact]:
        rows = (await self._transport.json("GET", f"jobs/{id_of(job)}/artifacts/"))["data"]
        return [Artifact.parse(row) for row in rows]

    async def download(self, job: JobFields | str, folder: str | Path) -> Sequence[Path]:
        """Bring all files that a job produced into a folder; returns their paths.

        What is there already, whole, is kept, and what broke off goes on where it did. Each file appears
        under its name only when its digest is right. Raises BrokenDownload.
        """
        paths = []
        for artifact in await self.artifacts(job):
            path = place_of(Path(folder), artifact.path)
            address = f"jobs/{id_of(job)}/artifacts/{artifact.path}"
            await bring(self._transport, address, path, sha256=artifact.sha256, size=artifact.bytes)
            paths.append(path)
        return paths

    async def _changed(
        self, identity: str, latest: AsyncJob | None, etag: str, wait_s: int
    ) -> tuple[AsyncJob, str]:
        """The job, as soon as it is not as `etag` says, or after a while."""
        if latest is None:
            response = await self._transport.request("GET", f"jobs/{identity}/", tries=1)
        else:
            response = await self._transport.request(
                "GET",
                f"jobs/{identity}/",
                query={"wait_s": wait_s, "until": "change"},
                headers={"If-None-Match": etag} if etag else None,
                tries=1,
            )
            if response.status_code == httpx2.codes.NOT_MODIFIED:
                return latest, etag
        return self._job(_http.content_of(response)), response.headers.get("ETag", "")

    async def _log_since(self, identity: str, offset: int) -> tuple[str, int]:
        answer = await self._transport.json(
            "GET", f"jobs/{identity}/logs/", query={"offset": offset}, tries=1
        )
        return str(answer["text"]), int(answer["next_offset"])

    def _job(self, raw: Mapping[str, Any]) -> AsyncJob:
        return AsyncJob.parse(raw, jobs=self)


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
