"""Tags of jobs: what `ETag`, `If-None-Match` and `If-Match` compare."""

from __future__ import annotations

import hashlib

from rest_framework.exceptions import APIException

from portal.accounts.requests import ApiRequest
from scheduler.models import Job


class Outdated(APIException):
    status_code = 412
    default_code = "changed_meanwhile"
    default_detail = "The job has changed since the answer that If-Match names; read it again."


def tag_of(job: Job) -> str:
    """The tag of a job: its version, and a digest of its progress and of why it waits.

    Estimates that move with the clock alone are not in it.
    """
    moving = (job.step, job.total_steps, job.loss, job.wait_code, job.wait_text)
    return f'"{job.version}-{hashlib.sha256(repr(moving).encode()).hexdigest()[:12]}"'


def names(header: str, tag: str) -> bool:
    """Does `If-None-Match` name this tag? A proxy that compresses makes it a weak one."""
    return any(one.strip().removeprefix("W/") in (tag, "*") for one in header.split(","))


def seen_version(request: ApiRequest, job: Job) -> int | None:
    """The version that a change may begin from, where the request has `If-Match`.

    Of a tag its version counts: progress is no change that a person makes. Raises Outdated.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    versions = {one.strip().removeprefix("W/").strip('"').partition("-")[0] for one in header.split(",")}
    if str(job.version) not in versions:
        raise Outdated
    return job.version
