"""One sync of a node.

It carries the heartbeat, the states of the node's claims, and the portal's orders for them.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.conf import settings

from scheduler.errors import BadReport, NotFound, StaleAttempt
from scheduler.models import Claim, Gpu, Node
from scheduler.selectors.nodes import live_claims
from scheduler.selectors.run_specs import spec_of
from scheduler.services.markets.kinds import take_kind
from scheduler.services.nodes.boots import refuse_earlier_start, take_heartbeat
from scheduler.services.nodes.register import require_protocol, update_facts
from scheduler.services.nodes.state import readmit_node
from scheduler.services.nodes.withdrawal import take_notice
from scheduler.services.sync.claims import take_state
from scheduler.states import ENDED_BY_REPORT, JobState, NodeState
from trainer.protocol import ClaimOrder, GpuUse, Phase, Sync, SyncReply

log = logging.getLogger(__name__)
STALE, BAD = "stale_attempt", "bad_report"


def sync_node(*, node: Node, message: Sync, now: datetime) -> SyncReply:
    """Answer a node.

    A claim that cannot be accepted gets its own error; the rest counts. A message that comes late changes
    nothing. Raises OldProtocol and Superseded.
    """
    require_protocol(message.protocol)
    refuse_earlier_start(node=node, message=message, now=now)
    errors: dict[str, tuple[str, str]] = {}
    if take_heartbeat(node=node, message=message, now=now):
        _take_facts(node, message, now)
        errors = _take_claims(node, message, now)
        _heal(node, message, errors, now)
        take_notice(node=node, withdraw_in_s=message.withdraw_in_s, now=now)
    return SyncReply(
        next_sync_s=next_sync_s(Node.present.exclude(state=NodeState.LOST).count()),
        draining=node.state in (NodeState.DRAINING, NodeState.DRAINED),
        lease_s=settings.NODE_LOST_S,
        claims=_orders(node, message, errors),
    )


def next_sync_s(nodes: int) -> float:
    """Return the seconds until the next sync.

    It is 1 up to 50 nodes, a fiftieth of a second each above, at most 10.
    """
    return min(10.0, max(float(settings.SYNC_EVERY_S), nodes / 50))


def _take_facts(node: Node, message: Sync, now: datetime) -> None:
    if message.facts is not None:
        update_facts(node=node, facts=message.facts, now=now)
        take_kind(node=node, kind=message.facts.kind, market=message.facts.market, now=now)
    if message.gpus:
        _note_use(node, message.gpus)


def _note_use(node: Node, uses: tuple[GpuUse, ...]) -> None:
    gpus = {gpu.index: gpu for gpu in node.gpus.all()}
    changed = []
    for use in uses:
        if gpu := gpus.get(use.index):
            gpu.util, gpu.memory_used_bytes = use.util, use.memory_used_bytes
            changed.append(gpu)
    Gpu.objects.bulk_update(changed, ["util", "memory_used_bytes"])


def _take_claims(node: Node, message: Sync, now: datetime) -> dict[str, tuple[str, str]]:
    """Errors of claims in this message: claim -> (error, detail)."""
    errors: dict[str, tuple[str, str]] = {}
    for said in message.claims:
        try:
            if wrong := take_state(node=node, said=said, now=now):
                errors[said.claim] = (BAD, wrong)
        except (StaleAttempt, NotFound) as stale:
            errors[said.claim] = (STALE, str(stale))
        except BadReport as bad:
            errors[said.claim] = (BAD, str(bad))
    for claim, (error, detail) in errors.items():
        log.warning(
            "claim refused", extra={"node": node.pk, "claim": claim, "error": error, "detail": detail}
        )
    return errors


def _heal(node: Node, message: Sync, errors: dict[str, tuple[str, str]], now: datetime) -> None:
    """Trust a node again once it runs nothing stale.

    It was lost, did not confirm a stop, or its GPUs were not in order.
    """
    still_running = any(
        said.phase not in (Phase.DELIVERING, Phase.ENDED) and errors.get(said.claim, ("", ""))[0] == STALE
        for said in message.claims
    )
    waits = node.state == NodeState.BLOCKED and node.block_kind in ENDED_BY_REPORT
    if not still_running and (node.state == NodeState.LOST or waits):
        readmit_node(node=node, now=now)


def _orders(node: Node, message: Sync, errors: dict[str, tuple[str, str]]) -> tuple[ClaimOrder, ...]:
    live = [_order(claim, errors) for claim in live_claims(node) if not claim.outcome]
    listed = {order.claim for order in live}
    stale = [
        ClaimOrder(
            claim=said.claim, fence=said.fence, want="stop", error=errors[said.claim][0],
            detail=errors[said.claim][1],
        )
        for said in message.claims
        if said.claim in errors and said.claim not in listed
    ]  # fmt: skip
    return (*live, *stale)


def _order(claim: Claim, errors: dict[str, tuple[str, str]]) -> ClaimOrder:
    job = claim.attempt.job
    stop = job.state == JobState.STOPPING or bool(claim.attempt.pending_outcome)
    error, detail = errors.get(str(claim.pk), ("", ""))
    return ClaimOrder(
        claim=str(claim.pk),
        fence=claim.attempt.fence,
        want="stop" if stop else "run",
        stop_for=job.stop_for,
        grace_s=job.stop_grace_s or settings.STOP_GRACE_S / 2,
        spec=spec_of(claim) if claim.phase == Phase.ASSIGNED else None,
        acked_seq=claim.acked_seq,
        rendezvous=claim.attempt.rendezvous,
        error=error,
        detail=detail,
    )
