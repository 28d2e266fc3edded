"""The start of a node's agent that speaks for it, and news (docs/adr/0012).

An agent names each of its starts by a boot id and numbers its messages. The latest start speaks
for the node: a message of an earlier one, or one that comes late or twice, changes nothing. Two
side by side block the node.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from scheduler.errors import Superseded
from scheduler.models import Node
from scheduler.services.nodes.state import block_node
from scheduler.states import Block, NodeState
from trainer.protocol import Sync

log = logging.getLogger(__name__)
STRAYS = 3  # of an earlier start, each after the latest one had spoken: more than what was on its way
KEPT = 20  # earlier starts


def refuse_earlier_start(*, node: Node, message: Sync, now: datetime) -> None:
    """Raise Superseded for a start of the agent that no longer speaks for the node."""
    if message.boot_id in node.old_boot_ids and not _has_outlived(node, message, now):
        log.warning("an earlier start of an agent speaks", extra={"node": node.pk, "boot": message.boot_id})
        raise Superseded(
            "A later start of this node's agent has taken over. If both keep running, they share one node"
            " token: stop one of them."
        )


def take_heartbeat(*, node: Node, message: Sync, now: datetime) -> bool:
    """Record that the node lives.

    False where the message is no news: said before, or overtaken by a later one.
    """
    if message.boot_id == node.boot_id:
        return _is_next(node, message, now)
    return _take_over(node, message, now)


def _is_next(node: Node, message: Sync, now: datetime) -> bool:
    here = Node.objects.filter(pk=node.pk, boot_id=message.boot_id)
    if message.seq:  # agents from before it do not number what they say
        here = here.filter(sync_seq__lt=message.seq)
    return bool(here.update(last_seen_at=now, sync_seq=message.seq))


def _take_over(node: Node, message: Sync, now: datetime) -> bool:
    """Let this start speak for the node, unless yet another one was first."""
    old = [boot for boot in (*node.old_boot_ids, node.boot_id) if boot not in ("", message.boot_id)][-KEPT:]
    seqs = {**node.old_seqs, node.boot_id: node.sync_seq}
    columns = {
        "boot_id": message.boot_id,
        "sync_seq": message.seq,
        "old_boot_ids": old,
        "old_seqs": {boot: seqs.get(boot, 0) for boot in old},
    }
    changed = Node.objects.filter(pk=node.pk, boot_id=node.boot_id).update(last_seen_at=now, **columns)
    node.refresh_from_db()
    return bool(changed)


@transaction.atomic
def _has_outlived(node: Node, message: Sync, now: datetime) -> bool:
    """Count the messages of an earlier start of the agent.

    True if it goes on while nothing is heard of the latest start any more.
    """
    node.refresh_from_db(from_queryset=Node.objects.select_for_update(no_key=True))
    if 0 < message.seq <= node.old_seqs.get(message.boot_id, 0):
        return False  # said again by somebody on the way
    lease = timedelta(seconds=settings.NODE_LOST_S)
    heard, latest = [datetime.fromisoformat(at) for at in node.strays], node.last_seen_at
    if node.state == NodeState.LOST:
        heard = [*[at for at in heard if at > latest][:1], now]
    else:
        heard = [at for at in heard if at > now - lease]
        if not heard or latest > heard[-1]:
            heard = [*heard, now][-STRAYS:]
    node.strays = [at.isoformat() for at in heard]
    node.old_seqs[message.boot_id] = message.seq
    node.save(update_fields=["strays", "old_seqs"])
    if node.state == NodeState.LOST:
        return now - heard[0] >= lease / 3  # longer than what was on its way takes to arrive
    if len(heard) == STRAYS or node.block_kind == Block.IDENTITY:
        reason = "Two agents use this node's token; the node works again once one of them is stopped."
        block_node(node=node, kind=Block.IDENTITY, reason=reason, now=now, until=now + lease)
    return False
