"""The price of a GPU hour on a node."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from knowledge.core.domain.wording import money
from portal.accounts.models import User
from portal.accounts.services import audit
from portal.events.types import EventType
from scheduler import hints
from scheduler.errors import BadParameters, Conflict
from scheduler.models import Allocation, Node, NodePrice
from scheduler.services.nodes.events import note_node

MAX_PRICE = 1e6


@transaction.atomic
def set_price(*, node: Node, price: float, seen: float, actor: User, now: datetime) -> Node:
    """Change the price per GPU hour of a node from now on.

    The actor saw its price as `seen`. Money spent until now keeps its price. Raises BadParameters;
    Conflict when someone else changed it meanwhile.
    """
    if not 0 <= price <= MAX_PRICE:
        raise BadParameters({"price": f"must be between 0 and {MAX_PRICE:,.0f}"})
    here = Node.present.filter(pk=node.pk, price_per_gpu_hour=seen)
    if not here.update(price_per_gpu_hour=price):
        raise Conflict("Someone else has changed the price. Reload, check, and try again.")
    NodePrice.objects.create(node=node, since=_from(node, now), price_per_gpu_hour=price)
    before, after = money(seen, settings.CURRENCY), money(price, settings.CURRENCY)
    change = f"Price per GPU hour: {before} to {after}."
    note_node(node=node, event=EventType.NODE_PRICE_CHANGED, now=now, reason=change, actor=actor)
    audit(action="node price changed", actor=actor, target=node.pk, data={"from": seen, "to": price}, now=now)
    hints.refresh_options()
    node.refresh_from_db()
    return node


@transaction.atomic
def follow_price(*, node: Node, price: float, now: datetime) -> None:
    """Let a node cost what its market asks for, from now on.

    Nothing happens if it does already.
    """
    if Node.present.filter(pk=node.pk).exclude(price_per_gpu_hour=price).update(price_per_gpu_hour=price):
        NodePrice.objects.create(node=node, since=_from(node, now), price_per_gpu_hour=price)
        hints.refresh_options()


def _from(node: Node, now: datetime) -> datetime:
    """Return the moment from which a new price holds.

    It is now; if the clock was set back, not before an earlier price or the end of what has ended.
    """
    latest = NodePrice.objects.filter(node=node).aggregate(at=Max("since"))["at"]
    released = Allocation.objects.filter(gpu__node=node).aggregate(at=Max("released_at"))["at"]
    return max(moment for moment in (now, latest, released) if moment is not None)
