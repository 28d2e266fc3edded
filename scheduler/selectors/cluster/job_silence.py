"""What is known of a job of which nothing is heard, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from scheduler.core.market.types import NodeTerms
from scheduler.models import Checkpoint, Job
from scheduler.selectors.checkpoints import resumable
from scheduler.selectors.figures.times import duration_s
from scheduler.selectors.silence import is_silent, waits_until
from scheduler.states import STOPPED_TO, JobState, StopFor


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSilence:
    """A job some of whose nodes are silent.

    nodes: their names. since: when the first of them was last heard of.
    until: when the portal gives the job's attempt up, if nothing more is heard.
    then: the state that follows; `queued`: it starts again.
    trained: whether the attempt had begun to train.
    step: its last known step. checkpoint: from which it goes on; None: from the beginning.
    """

    nodes: tuple[str, ...]
    since: datetime
    until: datetime
    then: JobState
    trained: bool
    step: int
    checkpoint: Checkpoint | None

    @property
    def resumes_from_step(self) -> int | None:
        """The step after which it goes on; None where it does not start again."""
        if self.then is not JobState.QUEUED:
            return None
        return self.checkpoint.step if self.checkpoint else 0


def job_silence(job: Job, now: datetime) -> JobSilence | None:
    """Return it of a job that was read by `get_job`.

    None while all of its nodes are heard of.

    It takes three queries where there is any.
    """
    attempt = next((attempt for attempt in job.attempts.all() if attempt.ended_at is None), None)
    nodes = [claim.node for claim in attempt.claims.all()] if attempt else []
    silent = [node for node in nodes if is_silent(node, now)]
    if attempt is None or not silent:
        return None
    since = min(node.last_seen_at for node in silent)
    until = waits_until(job, since, now)
    return JobSilence(
        nodes=tuple(sorted(node.name for node in silent)),
        since=since,
        until=until,
        then=_then(job, until, spot=any(node.kind == NodeTerms.SPOT for node in nodes)),
        trained=attempt.running_at is not None,
        step=job.step,
        checkpoint=resumable(job),
    )


def _then(job: Job, at: datetime, *, spot: bool) -> JobState:
    """The state after the loss of its node, as `services.jobs.attempts` moves it."""
    then = STOPPED_TO[StopFor(job.stop_for)] if job.stop_for else JobState.QUEUED
    if then is not JobState.QUEUED:
        return then
    no_time = job.max_run_s is not None and duration_s(list(job.attempts.all()), at) >= job.max_run_s
    no_tries = not (job.stop_for or spot) and job.infrastructure_used >= settings.INFRASTRUCTURE_RETRIES
    return JobState.FAILED if no_time or no_tries else JobState.QUEUED
