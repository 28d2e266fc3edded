"""A person's live jobs, and events since their last visit."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from portal.accounts.models import User
from scheduler.models import Job, JobEvent, NodeEvent
from scheduler.states import TERMINAL, JobEventKind, JobState, NodeEventKind

NEWS = frozenset({JobState.RUNNING, JobState.PAUSED, *TERMINAL})
K = NodeEventKind
NODE_NEWS = (K.JOINED, K.LOST, K.BACK, K.BLOCKED, K.DRAINED, K.REMOVED)


def has_submitted(user: User) -> bool:
    """Whether the user ever submitted a job."""
    return Job.objects.filter(owner=user).exists()


def unfinished_jobs(user: User) -> QuerySet[Job]:
    """The user's own jobs that have not ended, newest first."""
    return Job.objects.filter(owner=user).exclude(state__in=TERMINAL).order_by("-pk")


def job_news(user: User, since: datetime) -> QuerySet[JobEvent]:
    """Return starts and ends of the user's own jobs caused by others, newest first.

    Their cause is someone or something other than the user.
    """
    found = JobEvent.objects.filter(job__owner=user, kind=JobEventKind.STATE, new__in=NEWS, at__gt=since)
    return found.exclude(actor=user).select_related("job").order_by("-at", "-pk")


def node_news(since: datetime) -> QuerySet[NodeEvent]:
    """Nodes that came or went, newest first."""
    found = NodeEvent.objects.filter(kind__in=NODE_NEWS, at__gt=since)
    return found.select_related("node").order_by("-id")
