"""The states people and programs see, and the rows that are in them.

The module reads `states.public_state` backwards.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from scheduler.models import Job
from scheduler.states import TERMINAL, JobState, StopFor, public_state

WHILE_PAUSED = "It is paused and holds no GPUs; resume it, and it waits for its turn again."
PUBLIC_STATES = ("queued", "running", "pausing", "paused", "succeeded", "failed", "cancelled")


def in_public_state(rows: QuerySet[Job], state: str) -> QuerySet[Job]:
    """The jobs among `rows` that are shown in that state."""
    return rows.filter(state_condition(state))


def state_condition(state: str) -> Q:
    """The condition for rows that are shown in that state."""
    wanted = Q(pk__in=[])
    for internal in JobState:
        for stop_for in StopFor if internal is JobState.STOPPING else ("",):
            if public_state(internal, stop_for) == state:
                wanted |= Q(state=internal, stop_for=stop_for)
    return wanted


def shown_state(job: Job) -> str:
    return public_state(JobState(job.state), job.stop_for)


def may(job: Job) -> dict[str, bool]:
    """Which verbs make sense for the job now; the services decide for good."""
    state = shown_state(job)
    return {
        "cancel": job.state not in TERMINAL and state != "cancelled",
        "pause": state in ("queued", "running") and job.state != JobState.STOPPING,
        "resume": state == "paused",
    }
