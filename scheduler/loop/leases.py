"""Leases of nodes, by the database's clock: who was silent for too long is lost."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max

from scheduler.loop import epoch as epochs
from scheduler.models import Attempt, Epoch, Job, Node
from scheduler.services.attempts import end_attempt
from scheduler.services.node_states import lose_node
from scheduler.states import LIVE, NodeState, Outcome

log = logging.getLogger(__name__)


def renew_after_a_gap(epoch: Epoch, now: datetime) -> None:
    """After the portal was away for longer than a lease, silence proves nothing: all leases begin anew.

    So do leases and deadlines when the clock was set back, or they would end only once it has caught up. Back
    by less than a lease it is left to catch up: clocks are put right by milliseconds every day.
    """
    if epoch.last_tick_at is None:
        return
    away_s = (now - epoch.last_tick_at).total_seconds()
    if abs(away_s) <= settings.NODE_LOST_S:
        return
    with epochs.row(epoch):
        Node.present.exclude(state=NodeState.LOST).update(last_seen_at=now)
        Job.objects.filter(state__in=LIVE, state_since__gt=now).update(state_since=now)
        log.warning("leases renewed after a gap", extra={"seconds": away_s})


def expire(epoch: Epoch, now: datetime) -> None:
    """Nodes silent for longer than their lease are lost, and so are the attempts on them."""
    silent_since = now - timedelta(seconds=settings.NODE_LOST_S)
    silent = Node.present.exclude(state=NodeState.LOST).filter(last_seen_at__lt=silent_since)
    if _cut_off(now):
        return
    for pk in silent.values_list("pk", flat=True):
        with epochs.row(epoch, node=pk):
            # Again, and held: a heartbeat that comes meanwhile either counts or finds the node lost.
            if node := silent.select_for_update().filter(pk=pk).first():
                _lose(node, now)


def _cut_off(now: datetime) -> bool:
    """Is none of several nodes heard of any more? Then the portal's own door is more likely to be shut.

    Their trainings go on, and nobody could take the jobs over: all is left until nodes stop by themselves.
    """
    known = Node.present.exclude(state=NodeState.LOST)
    nodes, heard_at = known.aggregate(nodes=Count("pk"), heard_at=Max("last_seen_at")).values()
    if nodes < 2:
        return False
    silent_s = (now - heard_at).total_seconds()
    return bool(settings.NODE_LOST_S < silent_s < settings.NODE_STOPS_S)


def _lose(node: Node, now: datetime) -> None:
    lose_node(node=node, reason=f"Silent for more than {settings.NODE_LOST_S:g} s.", now=now)
    reason = f"Its node {node.name} was lost."
    for attempt in Attempt.objects.filter(ended_at__isnull=True, claims__node=node).distinct():
        end_attempt(attempt=attempt, outcome=Outcome.LOST, reason=reason, now=now)
