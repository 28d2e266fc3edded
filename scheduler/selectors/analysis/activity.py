"""A person's live jobs, and events since their last visit."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django.db.models import QuerySet

from portal.accounts.models import User
from portal.events.models import Event
from portal.events.selectors import stream
from portal.events.types import EventType
from scheduler.models import Job, Node
from scheduler.states import TERMINAL

T = EventType
JOB_NEWS = (T.JOB_STARTED, T.JOB_PAUSED, T.JOB_SUCCEEDED, T.JOB_FAILED, T.JOB_CANCELLED)
NODE_NEWS = (
    T.NODE_JOINED, T.NODE_LOST, T.NODE_BACK, T.NODE_BLOCKED, T.NODE_DRAINED, T.NODE_REMOVED,
)  # fmt: skip


class JobNews(NamedTuple):
    """A start or an end of a job."""

    event: Event
    job: Job


class NodeNews(NamedTuple):
    """A node that came or went."""

    event: Event
    node: Node


def has_submitted(user: User) -> bool:
    """Whether the user ever submitted a job."""
    return Job.objects.filter(owner=user).exists()


def unfinished_jobs(user: User) -> QuerySet[Job]:
    """The user's own jobs that have not ended, newest first."""
    return Job.objects.filter(owner=user).exclude(state__in=TERMINAL).order_by("-pk")


def job_news(user: User, *, after: int, limit: int) -> list[JobNews]:
    """Starts and ends of the user's own jobs, newest first.

    after: a position of the stream. Their cause is someone or something other than the user.
    """
    own = Job.objects.filter(owner=user).order_by().values("pk")
    found = _newest(JOB_NEWS, after).filter(subject__in=own).exclude(actor=user)[:limit]
    jobs = Job.objects.in_bulk([event.subject for event in found])
    return [JobNews(event, jobs[event.subject]) for event in found if event.subject in jobs]


def node_news(*, after: int, limit: int) -> list[NodeNews]:
    """Nodes that came or went after a position of the stream, newest first."""
    found = _newest(NODE_NEWS, after)[:limit]
    nodes = Node.objects.in_bulk([event.subject for event in found])
    return [NodeNews(event, nodes[event.subject]) for event in found if event.subject in nodes]


def _newest(types: Collection[EventType], after: int) -> QuerySet[Event]:
    return stream(after=after).filter(type__in=types).reverse()
