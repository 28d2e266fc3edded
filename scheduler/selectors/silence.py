"""Silence of nodes and jobs.

One definition for pages, programs, figures and starts: of what is not heard of, nothing live is told.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Min, OuterRef, Q, QuerySet, Subquery

from scheduler.core.serving import LeaseTerms, Reachability, Span, lost_at
from scheduler.models import Claim, Epoch, Job, Node
from scheduler.states import JobState, NodeState

# A state of nodes for people alone: work could be there, or come, if something were heard. Other states say
# already that no work goes there.
SILENT = "silent"
MAY_BE_SILENT = (NodeState.READY, NodeState.DRAINING)
NODE_STATES = (
    NodeState.READY.value,
    SILENT,
    *(state.value for state in NodeState if state != NodeState.READY),
)


def trusted_since(now: datetime) -> datetime:
    """Return the time such that nodes last heard of before it get no starts.

    That holds even if they have not been declared lost.
    """
    return now - _trust()


def _trust() -> timedelta:
    """How long a node is trusted after it was heard of."""
    return timedelta(seconds=min(settings.NODE_SUSPECT_S, settings.NODE_LOST_S))


def is_silent(node: Node, now: datetime) -> bool:
    """Return whether nothing was heard of the node lately, in whatever state it is."""
    return node.last_seen_at < trusted_since(now)


def silent_nodes(now: datetime) -> Q:
    """The nodes that people see as silent."""
    return Q(state__in=MAY_BE_SILENT, last_seen_at__lt=trusted_since(now))


def shown_node_state(node: Node, now: datetime) -> str:
    """The state of a node as people see it."""
    return SILENT if node.state in MAY_BE_SILENT and is_silent(node, now) else node.state


def heard_of_claims(attempts: str) -> Subquery:
    """When the first silent node of a live attempt was last heard of.

    Null without a node.

    attempts: the field of the outer rows that holds the attempt's job.
    """
    live = Claim.objects.filter(attempt__job=OuterRef(attempts), attempt__ended_at__isnull=True)
    return Subquery(
        live.order_by().values("attempt__job").annotate(at=Min("node__last_seen_at")).values("at")
    )


def with_nodes_heard(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """Read when the nodes of each job were last heard of, for `silent_since`."""
    return jobs.annotate(nodes_heard_at=heard_of_claims("pk"))


def silent_since(job: Job, now: datetime) -> datetime | None:
    """Since when nothing is heard of a node that the job holds.

    None while all are heard of.

    Of a gang, one silent node is enough: its training waits for that one. It takes no query of a job that was
    read by `with_nodes_heard`.
    """
    if not hasattr(job, "nodes_heard_at"):
        job = with_nodes_heard(Job.objects.filter(pk=job.pk)).get()
    heard_at: datetime | None = job.nodes_heard_at  # type: ignore[attr-defined]
    # The sum, as `now` may be a moment that is asked for only where it is needed.
    return heard_at if heard_at is not None and heard_at + _trust() < now else None


def lease_terms() -> LeaseTerms:
    """How long nodes may be silent, by the settings."""
    return LeaseTerms(
        lease=timedelta(seconds=settings.NODE_LOST_S), stops=timedelta(seconds=settings.NODE_STOPS_S)
    )


def state_limits_s() -> dict[JobState, float]:
    """How long a job may be in a state that its nodes have to end, in s."""
    return {
        JobState.ASSIGNED: settings.ASSIGNED_TIMEOUT_S,
        JobState.STARTING: settings.STARTING_TIMEOUT_S,
        JobState.STOPPING: settings.STOP_GRACE_S,
    }


def waits_until(job: Job, heard_at: datetime, now: datetime) -> datetime:
    """Return when a job's attempt is given up, if nothing more is heard.

    It takes two queries or three.

    That is when its node is lost, or before it when the job has been in its state for too long.

    heard_at: when the first of its silent nodes was last heard of.
    """
    epoch = Epoch.objects.first() or Epoch(since=now)
    known = Node.present.exclude(state=NodeState.LOST).count()
    web, terms = way_in(epoch, "web", now), lease_terms()
    lost = lost_at(
        terms,
        web=web,
        nodes=way_in(epoch, "nodes", now),
        several=known > 1,
        heard_at=heard_at,
        now=now,
    )
    limit_s = state_limits_s().get(JobState(job.state))
    if limit_s is None or (job.state == JobState.ASSIGNED and in_engine_queue(job)):
        return lost
    allowed = timedelta(seconds=max(limit_s, job.stop_grace_s or 0))
    return min(lost, max(job.state_since, web.open_since(now, terms.gap)) + allowed)


def in_engine_queue(job: Job) -> bool:
    """Does its attempt wait in the queue of a node's own engine?"""
    return job.attempts.filter(ended_at__isnull=True, queued_s__isnull=True).exists()


def way_in(epoch: Epoch, name: str, now: datetime) -> Reachability:
    """Return how a way into the portal was used, as the last tick noted it.

    The ways are `web` and `nodes`.
    """
    heard_at, since = getattr(epoch, f"{name}_heard_at"), getattr(epoch, f"{name}_since")
    if heard_at is None or since is None:
        return Reachability(heard_at=now, since=now)
    spans = getattr(epoch, f"{name}_earlier")
    earlier = tuple(Span(*map(datetime.fromisoformat, span)) for span in spans)
    return Reachability(heard_at=heard_at, since=since, earlier=earlier)
