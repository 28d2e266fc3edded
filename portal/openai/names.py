"""Names and moments as programs written for OpenAI know them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from portal.accounts.public_ids import public_id
from scheduler.models import Job

JOB, RESULT = "ftjob-", "file-metrics-"
PREFIX, STEP = "ft:", "ckpt-step-"
_ID = re.compile(r"[0-9a-f]{24}\Z")
_PLAIN = re.compile(r"[^\w.-]+")
LONGEST_SUFFIX = 64
PURPOSE, RESULTS = "fine-tune", "fine-tune-results"


def seconds(moment: datetime | None) -> int | None:
    """Whole Unix seconds."""
    return None if moment is None else int(moment.timestamp())


def organization_id(job: Job) -> str:
    """The team that is charged, or else the owner."""
    return public_id(job.team or job.owner)


def owner_name(job: Job) -> str:
    return job.team.name if job.team else job.owner.get_username()


def _part(text: str) -> str:
    return _PLAIN.sub("-", text)[:LONGEST_SUFFIX].strip("-")


def model_name(job: Job, step: int | None = None) -> str:
    """The name of the model that the job makes, or of its checkpoint at a step.

    E.g. `ft:builtin/tiny-llama:team-a:my-suffix:0193c2a7e4b1b1c6f2a3d4e5`.
    """
    made = f"{PREFIX}{job.model}:{_part(owner_name(job))}:{_part(job.name)}:{job.pk.removeprefix(JOB)}"
    return made if step is None else f"{made}:{STEP}{step}"


class Named(NamedTuple):
    """What the name of a fine-tuned model names."""

    job_id: str
    step: int | None


def named(model: str) -> Named | None:
    """The job that made a model of this name; None for a name that is none of ours."""
    if not model.startswith(PREFIX):
        return None
    rest, _, last = model.rpartition(":")
    step = None
    if last.startswith(STEP) and last.removeprefix(STEP).isdecimal():
        step, last = int(last.removeprefix(STEP)[:18]), rest.rpartition(":")[2]
    return Named(JOB + last, step) if _ID.match(last) else None


def result_id(job_id: str) -> str:
    """Id of the file with the figures of the job's steps."""
    return RESULT + job_id.removeprefix(JOB)


def job_of_result(file_id: str) -> str | None:
    """The job of a file of figures; None for another file."""
    digits = file_id.removeprefix(RESULT)
    return JOB + digits if digits != file_id and _ID.match(digits) else None
