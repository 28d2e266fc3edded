"""What time alone decides: leases of nodes, and states that last too long.

Each looks at state and age only, by the database's clock, and acts in one transaction a row.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Now

from scheduler.loop import epoch as epochs
from scheduler.models import Attempt, Epoch, Job, Node
from scheduler.services.attempts import end_attempt
from scheduler.services.jobs import preempt_job
from scheduler.services.moves import locked
from scheduler.services.node_states import UNCONFIRMED, block_node, finish_drain, lose_node, welcome_back
from scheduler.states import LIVE, STOPPABLE, JobState, NodeState, Outcome, StopFor

log = logging.getLogger(__name__)


def renew_leases_after_a_gap(epoch: Epoch, now: datetime) -> None:
    """After the portal was away for longer than a lease, silence proves nothing: all leases begin anew."""
    gap = timedelta(seconds=settings.NODE_LOST_S)
    if epoch.last_tick_at is not None and now - epoch.last_tick_at > gap:
        Node.present.exclude(state=NodeState.LOST).update(last_seen_at=Now())
        log.warning(
            "leases renewed after a gap", extra={"seconds": (now - epoch.last_tick_at).total_seconds()}
        )


def expire_leases(epoch: Epoch, now: datetime) -> None:
    """Nodes silent for longer than their lease are lost, and so are the attempts on them."""
    silent_since = now - timedelta(seconds=settings.NODE_LOST_S)
    silent = Node.present.exclude(state=NodeState.LOST).filter(last_seen_at__lt=silent_since)
    for pk in silent.values_list("pk", flat=True):
        with transaction.atomic():
            epochs.hold(epoch)
            # Again, and held: a heartbeat that comes meanwhile either counts or finds the node lost.
            if node := silent.select_for_update().filter(pk=pk).first():
                _lose(node, now)


def _lose(node: Node, now: datetime) -> None:
    lose_node(node=node, reason=f"Silent for more than {settings.NODE_LOST_S:g} s.", now=now)
    for attempt in Attempt.objects.filter(ended_at__isnull=True, claims__node=node).distinct():
        end_attempt(attempt=attempt, outcome=Outcome.LOST, reason=f"Its node {node.name} was lost.", now=now)


def enforce_deadlines(epoch: Epoch, now: datetime) -> None:
    """End what stays assigned, starting or stopping for too long."""
    limits = {
        JobState.ASSIGNED: settings.ASSIGNED_TIMEOUT_S,
        JobState.STARTING: settings.STARTING_TIMEOUT_S,
        JobState.STOPPING: settings.STOP_GRACE_S,
    }
    for state, limit_s in limits.items():
        old = Job.objects.filter(state=state, state_since__lt=now - timedelta(seconds=limit_s))
        for job in old:
            if state is not JobState.STOPPING or _overdue_stop(job, now):
                _end_overdue(epoch, job, state, limit_s, now)


def _overdue_stop(job: Job, now: datetime) -> bool:
    allowed = max(settings.STOP_GRACE_S, job.stop_grace_s or 0)
    return job.state_since < now - timedelta(seconds=allowed)


@transaction.atomic
def _end_overdue(epoch: Epoch, seen: Job, state: JobState, limit_s: float, now: datetime) -> None:
    epochs.hold(epoch)
    job = locked(seen.pk)
    if job.version != seen.version:
        return
    attempt = Attempt.objects.filter(job=job, ended_at__isnull=True).first()
    if attempt is None:
        log.error("a job in a live state has no live attempt", extra={"job": job.pk, "state": state.value})
        return
    outcome = Outcome.LOST if state is JobState.STOPPING else Outcome.TIMEOUT
    if state is JobState.STOPPING:
        for node in Node.objects.filter(claims__attempt=attempt, claims__outcome="").distinct():
            reason = (
                f"It did not confirm the stop of {job.pk}; it works again when it reports nothing running."
            )
            block_node(node=node, kind=UNCONFIRMED, reason=reason, now=now)
    end_attempt(attempt=attempt, outcome=outcome, reason=f"{state} for more than {limit_s:g} s.", now=now)


def heal_and_drain(epoch: Epoch, now: datetime) -> None:
    """End blocks that time heals, move jobs off draining nodes, and finish drains."""
    for node in Node.present.filter(state=NodeState.BLOCKED, until__lt=now):
        with transaction.atomic():
            epochs.hold(epoch)
            welcome_back(node=node, now=now)
    draining = Node.objects.filter(state=NodeState.DRAINING).annotate(
        live=Count("claims", filter=Q(claims__attempt__ended_at__isnull=True))
    )
    for node in draining:
        with transaction.atomic():
            epochs.hold(epoch)
            if node.live == 0:
                finish_drain(node=node, now=now)
            elif node.move_jobs:
                _move_jobs_off(node, now)


def _move_jobs_off(node: Node, now: datetime) -> None:
    on_node = Job.objects.filter(
        state__in=LIVE & STOPPABLE, attempts__ended_at__isnull=True, attempts__claims__node=node
    )
    for job in on_node.distinct():
        preempt_job(
            job=job, stop_for=StopFor.DRAIN, now=now, reason=f"Node {node.name} is draining.", grace_s=None
        )
