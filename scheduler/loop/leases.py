"""Leases of nodes, by the database's clock.

A node is lost if it is silent for too long although it could have been heard.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Max, Min, Q

from scheduler.core.serving import Reachability, lost_before
from scheduler.loop import leadership
from scheduler.loop.budget import TickBudget
from scheduler.models import Attempt, Epoch, Job, Node, WebBeat
from scheduler.selectors.silence import lease_terms, way_in
from scheduler.services.jobs.attempts import end_attempt
from scheduler.services.nodes.state import lose_node
from scheduler.states import LIVE, NodeState, Outcome

log = logging.getLogger(__name__)
KNOWN = ~Q(state=NodeState.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHeard:
    """The result of a look.

    It holds both ways in, the number of nodes that are not lost, and the longest silence.
    """

    web: Reachability
    nodes: Reachability
    known: int
    longest_silent: datetime | None


def renew_leases_after_a_clock_step(epoch: Epoch, now: datetime) -> None:
    """Begin leases and deadlines that lie ahead anew after the clock was set back.

    Otherwise they would end only once the clock has caught up. After a smaller step back they
    are left to catch up: clocks are corrected by milliseconds every day.
    """
    if epoch.last_tick_at is None or epoch.last_tick_at - now <= lease_terms().gap:
        return
    with leadership.row(epoch):
        Node.present.filter(last_seen_at__gt=now).update(last_seen_at=now)
        Job.objects.filter(state__in=LIVE, state_since__gt=now).update(state_since=now)
        WebBeat.objects.filter(at__gt=now).update(at=now)
        epoch.web_heard_at = epoch.web_since = epoch.nodes_heard_at = epoch.nodes_since = now
        epoch.web_earlier = epoch.nodes_earlier = []
        log.warning("leases renewed: the clock was set back", extra={"from": epoch.last_tick_at.isoformat()})


def last_heard(epoch: Epoch, now: datetime) -> LastHeard:
    """Look which nodes were heard of, and note it in the epoch.

    A sync proves that the web server serves, too.
    """
    found = Node.present.aggregate(
        heard_at=Max("last_seen_at"),
        known=Count("pk", filter=KNOWN),
        longest_silent=Min("last_seen_at", filter=KNOWN),
    )
    beat_at = WebBeat.objects.aggregate(at=Max("at"))["at"]
    nodes_at = found["heard_at"] or beat_at or now
    web_at, gap = max(beat_at or nodes_at, nodes_at), lease_terms().gap
    web = way_in(epoch, "web", web_at).heard(web_at, gap)
    nodes = way_in(epoch, "nodes", nodes_at).heard(nodes_at, gap)
    if found["known"] < 2:  # when a second one joins, the silence of the first has proved something all along
        nodes = web
    for name, found_open in (("web", web), ("nodes", nodes)):
        setattr(epoch, f"{name}_heard_at", found_open.heard_at)
        setattr(epoch, f"{name}_since", found_open.since)
        spans = [[span.begin.isoformat(), span.end.isoformat()] for span in found_open.earlier]
        setattr(epoch, f"{name}_earlier", spans)
    return LastHeard(web=web, nodes=nodes, known=found["known"], longest_silent=found["longest_silent"])


def expire_leases(epoch: Epoch, now: datetime) -> Reachability:
    """Mark nodes whose leases are over, and their attempts, as lost.

    Returns the web server's own reachability. A tick handles a limited number, in any order.
    Each loss is a hint for the next tick, and the nodes that remain get no starts meanwhile.
    """
    heard = last_heard(epoch, now)
    before = lost_before(lease_terms(), web=heard.web, nodes=heard.nodes, several=heard.known > 1, now=now)
    if before and heard.longest_silent and heard.longest_silent < before:
        silent, budget = Node.present.filter(KNOWN, last_seen_at__lt=before), TickBudget()
        for pk in silent.order_by("?").values_list("pk", flat=True):
            if not budget.allows():
                break
            with leadership.row(epoch, node=pk):
                # Again, and held: a heartbeat that comes meanwhile either counts or finds the node lost.
                if node := silent.select_for_update(no_key=True).filter(pk=pk).first():
                    budget.spend(1 + _lose(node, now))
    return heard.web


def _lose(node: Node, now: datetime) -> int:
    """Returns how many attempts ended with it."""
    lose_node(node=node, reason=f"Silent for more than {settings.NODE_LOST_S:g} s.", now=now)
    reason = f"Its node {node.name} was lost."
    attempts = list(Attempt.objects.filter(ended_at__isnull=True, claims__node=node).distinct())
    for attempt in attempts:
        end_attempt(attempt=attempt, outcome=Outcome.LOST, reason=reason, now=now)
    return len(attempts)
