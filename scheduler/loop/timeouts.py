"""Timeouts: states that last too long, blocks that expire, drains that are done.

Each looks at state and age only, by the database's clock, and acts in one transaction a row.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from knowledge.core.domain.wording import rough_time
from scheduler.core.serving import Reachability
from scheduler.loop import leadership
from scheduler.loop.budget import TickBudget
from scheduler.models import Allocation, Attempt, Claim, Epoch, Job, Node
from scheduler.selectors.cluster.windows import closed_jobs, closing, in_words
from scheduler.selectors.dependencies import hopeless
from scheduler.selectors.silence import lease_terms, state_limits_s
from scheduler.services.jobs.attempts import end_attempt
from scheduler.services.jobs.dependencies import cancel_hopeless
from scheduler.services.jobs.transitions import locked
from scheduler.services.jobs.verbs import preempt_job
from scheduler.services.nodes.state import block_node, finish_drain, readmit_node, record_decline
from scheduler.states import LIVE, STOPPABLE, Block, JobState, NodeState, Outcome, StopFor
from trainer.protocol import Phase

log = logging.getLogger(__name__)
SHORTEST_GRACE_S = 1.0


def enforce_all(epoch: Epoch, web: Reachability, now: datetime) -> None:
    """Enforce all time limits, as many rows as a tick may, in any order.

    The order is arbitrary because rows that cannot be handled must not stand first in every
    tick.
    """
    budget = TickBudget()
    enforce(epoch, web, now, budget)
    end_stuck_gangs(epoch, web, now, budget)
    expire_blocks_and_drain(epoch, now, budget)
    empty_closed_nodes(epoch, now, budget)
    stop_at_time_limits(epoch, now, budget)
    cancel_what_cannot_start(epoch, now, budget)


def cancel_what_cannot_start(epoch: Epoch, now: datetime, budget: TickBudget) -> None:
    """Cancel jobs that come after the success of one that ended otherwise.

    So are the jobs after those in turn, as many as a tick may.
    """
    changed = True
    while changed:
        changed = False
        for dependency in hopeless().order_by("?")[: settings.CHANGES_PER_TICK]:
            if not budget.allows():
                return
            with leadership.row(epoch, job=dependency.job_id):
                cancel_hopeless(dependency, now=now)
                budget.spend()
                changed = True


def enforce(epoch: Epoch, web: Reachability, now: datetime, budget: TickBudget) -> None:
    """End attempts that stay assigned, starting or stopping for too long.

    Only time in which nodes could have reported counts.
    """
    for state, limit_s in state_limits_s().items():
        if not _nodes_could_report(web, limit_s, now):
            continue
        since = now - timedelta(seconds=limit_s)
        old = Job.objects.filter(Exists(_holding()), state=state, state_since__lt=since)
        if state is JobState.ASSIGNED:
            old = old.filter(Exists(_not_taken_up()))
        if state is JobState.STARTING:
            old = old.exclude(Exists(_preparing(since)))
        for job in old.order_by("?"):
            if state is JobState.STOPPING and not _overdue_stop(job, now):
                continue
            if not budget.allows():
                return
            with leadership.row(epoch, job=job.pk):
                _end_overdue(job, limit_s, now)
                budget.spend()


def _nodes_could_report(web: Reachability, limit_s: float, now: datetime) -> bool:
    """Give every state its whole time anew after an absence of the web server."""
    return web.stood_open(timedelta(seconds=limit_s), now, lease_terms().gap)


def _holding() -> QuerySet[Allocation]:
    """Return the GPUs that a job holds.

    Once its training has ended it holds none, and its files may take their time.
    """
    return Allocation.objects.filter(
        claim__attempt__job=OuterRef("pk"), claim__attempt__ended_at__isnull=True, released_at__isnull=True
    )


def _not_taken_up() -> QuerySet[Claim]:
    """Return the claims of a job that their nodes know nothing of.

    One that its node has taken up may wait in the queue of that node's engine for as long as it likes.
    """
    return Claim.objects.filter(
        attempt__job=OuterRef("pk"), attempt__ended_at__isnull=True, phase=Phase.ASSIGNED
    )


def _preparing(since: datetime) -> QuerySet[Claim]:
    """Return the claims of a job that have made rows ready since then.

    Preparing much data takes longer than any start may.
    """
    return Claim.objects.filter(
        attempt__job=OuterRef("pk"), attempt__ended_at__isnull=True, prepared_at__gte=since
    )


def _overdue_stop(job: Job, now: datetime) -> bool:
    allowed = max(settings.STOP_GRACE_S, job.stop_grace_s or 0)
    return job.state_since < now - timedelta(seconds=allowed)


def _end_overdue(seen: Job, limit_s: float, now: datetime) -> None:
    job = locked(seen.pk)
    if job.version != seen.version:
        return
    attempt = Attempt.objects.filter(job=job, ended_at__isnull=True).first()
    if attempt is None:
        log.error("a job in a live state has no live attempt", extra={"job": job.pk, "state": job.state})
        return
    outcome, reason = Outcome.TIMEOUT, f"{job.state} for more than {limit_s:g} s."
    if job.state == JobState.STOPPING:
        outcome = Outcome.LOST
        _block_unconfirmed(attempt, now)
    elif job.state == JobState.ASSIGNED:
        reason = f"{reason} {_who_did_not_take_it_up(attempt, now)}"
    elif job.state == JobState.STARTING:
        reason = f"{reason} {_who_is_missing(attempt)}".strip()
    end_attempt(attempt=attempt, outcome=outcome, reason=reason, now=now)


def _block_unconfirmed(attempt: Attempt, now: datetime) -> None:
    reason = (
        f"It did not confirm the stop of {attempt.job_id}; it works again when it reports nothing running."
    )
    for node in Node.objects.filter(claims__attempt=attempt, claims__outcome="").distinct():
        block_node(node=node, kind=Block.UNCONFIRMED, reason=reason, now=now)


def _who_did_not_take_it_up(attempt: Attempt, now: datetime) -> str:
    """Count the start as declined by nodes that were heard of meanwhile.

    Such a node could have taken the attempt up, and would not take it up again either. Returns
    the reason for the job.
    """
    late = list(attempt.claims.filter(phase=Phase.ASSIGNED).select_related("node"))
    for claim in late:
        if claim.node.last_seen_at > attempt.created_at:
            record_decline(node=claim.node, reason=f"It did not take up {attempt.job_id}.", now=now)
            attempt.claims.filter(pk=claim.pk).update(outcome=Outcome.DECLINED, phase=Phase.ENDED)
    names = ", ".join(claim.node.name for claim in late)
    return f"Not taken up by {names}; the log of the agent there may say why."


def _who_is_missing(attempt: Attempt) -> str:
    """Return the reason why several nodes did not start together.

    It names the nodes that do not train yet, the place where they were to meet and the things
    to look at. It is empty for a single node.
    """
    claims = list(attempt.claims.select_related("node"))
    if len(claims) == 1:
        return ""
    address, first = attempt.rendezvous, claims[0].node.name
    late = ", ".join(claim.node.name for claim in claims if claim.phase != Phase.RUNNING)
    if not address:
        return f"{first} did not say where the nodes should meet; its log says what it was doing."
    return (
        f"No training yet on {late}; all were to meet on {first} at {address}. If the log ends while they"
        f" sign in or connect, open all TCP ports between these nodes, in both directions, and check that"
        f" each reaches that address (--address of the agent on {first})."
    )


def end_stuck_gangs(epoch: Epoch, web: Reachability, now: datetime, budget: TickBudget) -> None:
    """End attempts on several nodes that go on after one node ended badly.

    The nodes that go on with the training are given up.
    """
    if not _nodes_could_report(web, settings.STOP_GRACE_S, now):
        return
    since = now - timedelta(seconds=settings.STOP_GRACE_S)
    for seen in Attempt.objects.filter(ended_at__isnull=True, pending_since__lt=since).order_by("?"):
        if not budget.allows():
            return
        with leadership.row(epoch, attempt=str(seen.pk)):
            locked(seen.job_id)
            attempt = Attempt.objects.get(pk=seen.pk)
            if attempt.ended_at is None:
                _block_unconfirmed(attempt, now)
                outcome = Outcome(attempt.pending_outcome)
                end_attempt(attempt=attempt, outcome=outcome, reason=attempt.pending_reason, now=now)


def expire_blocks_and_drain(epoch: Epoch, now: datetime, budget: TickBudget) -> None:
    """End blocks that time heals, move jobs off draining nodes, and finish drains."""
    for node in Node.present.filter(state=NodeState.BLOCKED, until__lt=now).order_by("?"):
        if not budget.allows():
            return
        with leadership.row(epoch, node=node.pk):
            readmit_node(node=node, now=now)
            budget.spend()
    draining = Node.objects.filter(state=NodeState.DRAINING).annotate(
        live=Count("claims", filter=Q(claims__attempt__ended_at__isnull=True))
    )
    for node in draining.order_by("?"):
        if not budget.allows():
            return
        with leadership.row(epoch, node=node.pk):
            if node.live == 0:
                finish_drain(node=node, now=now)
                budget.spend()
            elif node.move_jobs:
                budget.spend(_move_jobs_off(node, now))


def empty_closed_nodes(epoch: Epoch, now: datetime, budget: TickBudget) -> None:
    """Stop jobs, with a checkpoint, on nodes that a window closes to them now or soon."""
    for window in closing(now):
        for job in closed_jobs(window).order_by("?"):
            if not budget.allows():
                return
            with leadership.row(epoch, job=job.pk):
                preempt_job(job=job, stop_for=StopFor.DRAIN, now=now, reason=in_words(window), grace_s=None)
                budget.spend()


def stop_at_time_limits(epoch: Epoch, now: datetime, budget: TickBudget) -> None:
    """Stop jobs that have run for as long as they may, with a checkpoint.

    They end as failed.
    """
    over = Job.objects.filter(
        state__in=LIVE & STOPPABLE,
        attempts__ended_at__isnull=True,
        attempts__queued_s__isnull=False,  # in an engine's queue no time of it is used
        attempts__stops_at__lte=now,
    )
    for job in over.order_by("?"):
        if not budget.allows():
            return
        with leadership.row(epoch, job=job.pk):
            reason = f"It has run for {rough_time(job.max_run_s or 0)}, its time limit."
            preempt_job(job=job, stop_for=StopFor.TIME_LIMIT, now=now, reason=reason, grace_s=None)
            budget.spend()


def _move_jobs_off(node: Node, now: datetime) -> int:
    """Stop its jobs with a checkpoint.

    On a node that its provider takes back they have as long as it is still there.
    """
    reason, grace_s = f"Node {node.name} is draining.", None
    if node.withdraw_at is not None:
        grace_s = max(SHORTEST_GRACE_S, (node.withdraw_at - now).total_seconds())
        reason = f"Node {node.name} is withdrawn in {grace_s:.0f} s."
    on_node = Job.objects.filter(
        state__in=LIVE & STOPPABLE, attempts__ended_at__isnull=True, attempts__claims__node=node
    )
    jobs = list(on_node.distinct())
    for job in jobs:
        preempt_job(job=job, stop_for=StopFor.DRAIN, now=now, reason=reason, grace_s=grace_s)
    return len(jobs)
