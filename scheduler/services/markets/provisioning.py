"""Markets looked after: counted or asked, nodes rented and given back.

Never inside a tick: a provisioner may take half a minute.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from portal.accounts.models import User
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EventType, subject
from scheduler.core.market.types import NodeTerms
from scheduler.errors import BadParameters
from scheduler.models import Claim, Market, MarketOrder, MarketSample, Node, SampleSource
from scheduler.selectors.markets.quotes import unknown_after
from scheduler.services.markets.provisioner import ProvisionerAnswer, ProvisionerFailed, ask
from scheduler.services.markets.samples import note_sample
from scheduler.services.nodes.events import note_node
from scheduler.services.nodes.register import create_join_token
from scheduler.states import NodeState

RETRY_AFTER = timedelta(minutes=10)  # after a failure it is not asked
FORGET_LOST = timedelta(hours=1)
log = logging.getLogger(__name__)


def look_after_markets(*, now: Callable[[], datetime]) -> None:
    """Note what markets offer, and bring about what policies want of them."""
    for market in Market.objects.all():
        if not market.provisioner:
            _count(market, now())
        elif market.quiet_until is None or market.quiet_until <= now():
            _serve(market, now)


def _count(market: Market, now: datetime) -> None:
    """Count the spot nodes that joined, unless somebody else does."""
    samples = MarketSample.objects.filter(
        market=market, at__gte=now - unknown_after(), available__isnull=False
    )
    if market.replays or samples.exclude(source=SampleSource.AGENT).exists():
        return
    if Node.objects.filter(market=market, kind=NodeTerms.SPOT).exists():
        note_sample(market=market, price=None, available=_here(market, NodeTerms.SPOT), now=now)


def _here(market: Market, kind: NodeTerms) -> int:
    present = Node.present.filter(market=market, kind=kind, withdraw_at=None, give_back=False)
    return present.exclude(state=NodeState.LOST).count()


def _serve(market: Market, now: Callable[[], datetime]) -> None:
    try:
        offer = _asked(market, {"do": "offer", "nodes": 0})
        note_sample(market=market, price=offer.price, available=offer.available, now=now())
        _release(market, now())  # first: nodes that nobody needs cost money even where new ones fail
        for order in MarketOrder.objects.filter(market=market, nodes__gt=0):
            _want(market, order, now())
    except (ProvisionerFailed, BadParameters) as failed:
        _rest(market, f"Its provisioner {market.provisioner} failed: {failed}.", now())
    else:
        Market.objects.filter(pk=market.pk).update(asked_at=now(), quiet_until=None, problem="")


def _want(market: Market, order: MarketOrder, now: datetime) -> None:
    """Ask for as many nodes in all as the policy wants, if fewer are here."""
    here = _here(market, NodeTerms(order.kind))
    if here >= order.nodes:
        MarketOrder.objects.filter(pk=order.pk).update(short_since=None)
        return
    waits = timedelta(seconds=settings.STARTING_TIMEOUT_S)
    if order.short_since is not None and order.short_since < now - waits and order.accepted > here:
        MarketOrder.objects.filter(pk=order.pk).update(short_since=None, accepted=0)
        raise ProvisionerFailed(f"it accepted {order.accepted} nodes, and {here} have come")
    token = create_join_token(
        actor=_administrator(), now=now, uses=order.nodes - here,
        lifetime_s=settings.STARTING_TIMEOUT_S + market.changeover_s,
    )  # fmt: skip
    answer = _asked(market, {"do": "want", "kind": order.kind, "nodes": order.nodes, "join_token": token})
    since = order.short_since or now if answer.accepted > here else None
    MarketOrder.objects.filter(pk=order.pk).update(accepted=answer.accepted, short_since=since)


def _release(market: Market, now: datetime) -> None:
    """Give back the nodes that no job needs, and forget those that were lost long ago."""
    gone = NodeState.DRAINED, NodeState.LOST
    nodes = Node.present.filter(market=market, give_back=True, state__in=gone)
    idle = [node for node in nodes if not Claim.objects.filter(node=node, attempt__ended_at=None).exists()]
    if idle:
        _asked(market, {"do": "release", "nodes": [node.name for node in idle]})
    old = Node.present.filter(
        market=market, kind=NodeTerms.SPOT, state=NodeState.LOST, state_since__lt=now - FORGET_LOST
    )
    for node in [*idle, *(node for node in old if node.pk not in {one.pk for one in idle})]:
        Node.present.filter(pk=node.pk).update(removed_at=now, token_hash=f"removed {node.pk}")
        note_node(node=node, event=EventType.NODE_REMOVED, now=now, reason="It went back to its market.")


def _asked(market: Market, question: dict[str, object]) -> ProvisionerAnswer:
    command = settings.PROVISIONERS.get(market.provisioner)
    if command is None:
        raise ProvisionerFailed("the setting PROVISIONERS does not name it any more")
    return ask(command, {**question, "market": market.name})


@transaction.atomic
def _rest(market: Market, problem: str, now: datetime) -> None:
    log.warning("provisioner failed", extra={"market": market.name, "reason": problem})
    if market.problem != problem[:500]:
        record(
            [
                Event(
                    subject=subject("market", market.pk), type=EventType.MARKET_FAILED, reason=problem, at=now
                )
            ]
        )
    Market.objects.filter(pk=market.pk).update(
        asked_at=now, quiet_until=now + RETRY_AFTER, problem=problem[:500]
    )


def _administrator() -> User:
    """The first active administrator, in whose name nodes join."""
    found = User.objects.filter(is_staff=True, is_active=True).order_by("pk").first()
    if found is None:
        raise ProvisionerFailed("no active administrator could let nodes join")
    return found
