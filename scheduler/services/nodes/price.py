"""The price of a GPU hour on a node."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.errors import BadParameters, Conflict
from scheduler.models import Node
from scheduler.services.nodes.state import note_node
from scheduler.states import NodeEventKind

MAX_PRICE = 1e6


@transaction.atomic
def set_price(*, node: Node, price: float, seen: float, actor: User, now: datetime) -> Node:
    """Change the price per GPU hour of a node whose price the actor saw as `seen`.

    Raises BadParameters; Conflict when someone else changed it meanwhile.
    """
    if not 0 <= price <= MAX_PRICE:
        raise BadParameters({"price": f"must be between 0 and {MAX_PRICE:,.0f}"})
    here = Node.present.filter(pk=node.pk, price_per_gpu_hour=seen)
    if not here.update(price_per_gpu_hour=price):
        raise Conflict("Someone changed the price meanwhile; look at it and decide again.")
    change = f"Price per GPU hour: {seen:g} to {price:g}."
    note_node(node=node, kind=NodeEventKind.PRICE, now=now, reason=change, actor=actor)
    audit(action="node price changed", actor=actor, target=node.pk, data={"from": seen, "to": price}, now=now)
    hints.refresh_options()
    node.refresh_from_db()
    return node
