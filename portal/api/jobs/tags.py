"""Tags of jobs: their versions, and what moves beside them."""

from __future__ import annotations

import hashlib

from portal.accounts.requests import ApiRequest
from portal.api.common.tags import MATCH, refuse_outdated, tag
from scheduler.models import Job


def tag_of(job: Job) -> str:
    """The tag of a job: its version, and a digest of its progress and of why it waits.

    Estimates that move with the clock alone are not in it.
    """
    moving = (job.step, job.total_steps, job.loss, job.wait_code, job.wait_text)
    return tag(str(job.version), hashlib.sha256(repr(moving).encode()).hexdigest()[:12])


def seen_version(request: ApiRequest, job: Job) -> int | None:
    """The version that a change may begin from, where the request has `If-Match`.

    Raises Outdated.
    """
    refuse_outdated(request, tag_of(job))
    return job.version if request.headers.get(MATCH, "*").strip() != "*" else None
