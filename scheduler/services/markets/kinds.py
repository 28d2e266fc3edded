"""The terms on which a node is there, by its agent or an administrator."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from portal.events.types import EventType
from scheduler import hints
from scheduler.core.market.types import NodeTerms
from scheduler.errors import BadParameters
from scheduler.models import Market, Node
from scheduler.selectors.markets.quotes import market_named
from scheduler.services.markets.prices import follow_market
from scheduler.services.nodes.events import note_node
from scheduler.services.nodes.price import set_price


@transaction.atomic
def change_node(
    *, node: Node, changes: Mapping[str, Any], seen_price: float | None, actor: User, now: datetime
) -> Node:
    """Change the price of a node, and on what terms it is there.

    changes: some of `price_per_gpu_hour`, `kind` and `market`. seen_price: the one that the actor saw, if
    they said so. Raises BadParameters naming the field, Conflict, NotAllowed.
    """
    require_admin(actor)
    seen = node.price_per_gpu_hour if seen_price is None else seen_price
    price = changes.get("price_per_gpu_hour", seen)
    if (price, seen) != (node.price_per_gpu_hour, node.price_per_gpu_hour):
        set_price(node=node, price=price, seen=seen, actor=actor, now=now)
    kind = NodeTerms(changes.get("kind", node.kind))
    market = changes.get("market", None if kind == NodeTerms.OWNED else node.market)
    if (kind, market) != (node.kind, node.market):
        set_kind(node=node, kind=kind, market=market, actor=actor, now=now)
    return node


@transaction.atomic
def set_kind(
    *, node: Node, kind: NodeTerms, actor: User, now: datetime, market: Market | None = None
) -> Node:
    """Say on what terms a node is there.

    An agent with --kind says it again at its next start. Raises BadParameters naming the field, NotAllowed.
    """
    require_admin(actor)
    if market and kind == NodeTerms.OWNED:
        raise BadParameters({"market": "an owned node is of no market; leave it out"})
    if market and (wrong := _misfit(node, market)):
        raise BadParameters({"market": wrong})
    _change(node, kind, market, actor, now)
    audit(
        action="node kind changed",
        actor=actor,
        target=node.pk,
        data={"kind": kind, "market": market.name if market else ""},
        now=now,
    )
    return node


@transaction.atomic
def take_kind(*, node: Node, kind: str, market: str, now: datetime) -> None:
    """Take over what a node's agent says; empty says nothing.

    A market that is not known, or does not fit, is noted, and the node is of none.
    """
    if not kind:
        return
    found, wrong = market_named(market) if market else None, ""
    if market and found is None:
        wrong = f"Its agent names a market {market}, which is not known here; an administrator can add it."
    elif found:
        wrong = _misfit(node, found)
    _change(node, NodeTerms(kind), None if wrong else found, None, now, wrong)


def _misfit(node: Node, market: Market) -> str:
    """Why it cannot be of this market; empty if it can."""
    models = set(node.gpus.values_list("model", flat=True))
    if models == {market.gpu_model}:
        return ""
    return f"It has {', '.join(sorted(models))}, and market {market.name} offers {market.gpu_model}."


def _change(
    node: Node, kind: NodeTerms, market: Market | None, actor: User | None, now: datetime, note: str = ""
) -> None:
    if (node.kind, node.market_id) == (kind, market.pk if market else None):
        return
    if not Node.present.filter(pk=node.pk).update(kind=kind, market=market):
        return  # removed meanwhile
    terms = f"{kind.replace('_', ' ')}{f' in market {market.name}' if market else ''}"
    note_node(
        node=node,
        event=EventType.NODE_KIND_CHANGED,
        now=now,
        reason=f"Now {terms}. {note}".strip(),
        actor=actor,
    )
    if market:
        follow_market(market=market, now=now)
    node.refresh_from_db()
    hints.refresh_options()
    hints.tick()
