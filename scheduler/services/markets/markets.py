"""Markets, as administrators keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from knowledge.catalogue.portal_catalogue import portal_catalogue
from portal.accounts.models import User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EventType, subject
from scheduler import hints
from scheduler.errors import BadParameters, Conflict
from scheduler.models import Market, MarketDecision, Node
from scheduler.services.markets.prices import follow_market
from scheduler.services.nodes.price import MAX_PRICE
from scheduler.services.quotas import unknown_gpu
from trainer.written import clean_name

LONGEST_NAME = 100
MOST_NODES = 1000
MOST_GPUS = 1024
LONGEST_CHANGEOVER_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketTerms:
    """An administrator's settings of a market, as the row has them."""

    name: str
    gpu_model: str
    on_demand_price: float
    gpus_per_node: int = 1
    max_nodes: int = 1
    provisioner: str = ""
    changeover_s: float = 120.0
    mix: bool = False
    replays: str = ""


@transaction.atomic
def add_market(*, terms: MarketTerms, actor: User, now: datetime) -> Market:
    """Make a market known. Raises BadParameters naming the field, NotAllowed."""
    require_admin(actor)
    cleaned = _checked(terms, known="")
    try:
        with transaction.atomic():
            market = Market.objects.create(**asdict(cleaned), created_at=now)
    except IntegrityError as taken:
        raise _taken(cleaned.name) from taken
    _note(market, EventType.MARKET_ADDED, asdict(cleaned), actor, now)
    audit(action="market added", actor=actor, target=f"market {market.pk}", data=asdict(cleaned), now=now)
    hints.tick()
    return market


@transaction.atomic
def change_market(*, market: Market, changes: Mapping[str, Any], actor: User, now: datetime) -> Market:
    """Change some of its terms. Raises BadParameters naming the field, NotAllowed."""
    require_admin(actor)
    held = Market.objects.select_for_update(of=("self",)).get(pk=market.pk)
    terms = _checked(MarketTerms(**{**_terms_of(held), **changes}), known=held.gpu_model)
    if terms.gpu_model != held.gpu_model and Node.present.filter(market=held).exists():
        raise Conflict("Nodes of this market are here; its GPU model stays while they are.")
    try:
        with transaction.atomic():
            Market.objects.filter(pk=held.pk).update(**asdict(terms))
    except IntegrityError as taken:
        raise _taken(terms.name) from taken
    held.refresh_from_db()
    follow_market(market=held, now=now)
    data = {name: value for name, value in asdict(terms).items() if name in changes}
    _note(held, EventType.MARKET_CHANGED, data, actor, now)
    audit(action="market changed", actor=actor, target=f"market {held.pk}", data=data, now=now)
    hints.tick()
    return held


@transaction.atomic
def remove_market(*, market: Market, actor: User, now: datetime) -> None:
    """Forget a market that nothing uses. Raises Conflict, NotAllowed."""
    require_admin(actor)
    held = Market.objects.select_for_update(of=("self",)).filter(pk=market.pk).first()
    if held is None:
        return
    if names := list(Node.present.filter(market=held).order_by("name").values_list("name", flat=True)[:3]):
        raise Conflict(f"Its nodes are still here ({', '.join(names)}); drain and remove them first.")
    if MarketDecision.objects.filter(market=held).exists():
        raise Conflict("Jobs were decided on this market; it stays, so that their history can be read.")
    _note(held, EventType.MARKET_REMOVED, _terms_of(held), actor, now)
    audit(action="market removed", actor=actor, target=f"market {held.pk}", data=_terms_of(held), now=now)
    held.delete()


def _note(market: Market, type: EventType, data: Mapping[str, Any], actor: User, now: datetime) -> None:
    record([Event(subject=subject("market", market.pk), type=type, data=dict(data), actor=actor, at=now)])


def _terms_of(market: Market) -> dict[str, Any]:
    return {name: getattr(market, name) for name in MarketTerms.__dataclass_fields__}


def _checked(terms: MarketTerms, *, known: str) -> MarketTerms:
    """The terms under the catalogue's name of the GPU model.

    known: the one that the market has; it may outlive its last node. Raises BadParameters.
    """
    errors, gpu_model = {}, portal_catalogue().gpu_key(terms.gpu_model)
    if gpu_model != known and (unknown := unknown_gpu(gpu_model)):
        errors["gpu_model"] = unknown
    try:
        name = clean_name(terms.name)
    except ValueError as wrong:
        name, errors["name"] = "", str(wrong)
    if len(name) > LONGEST_NAME:
        errors["name"] = f"must have at most {LONGEST_NAME} characters"
    if not isfinite(terms.on_demand_price) or not 0 < terms.on_demand_price <= MAX_PRICE:
        errors["on_demand_price"] = f"must be above 0 and at most {MAX_PRICE:,.0f}"
    if not 1 <= terms.gpus_per_node <= MOST_GPUS:
        errors["gpus_per_node"] = f"must be between 1 and {MOST_GPUS}"
    if not 0 <= terms.max_nodes <= MOST_NODES:
        errors["max_nodes"] = f"must be between 0 and {MOST_NODES}"
    if not isfinite(terms.changeover_s) or not 0 <= terms.changeover_s <= LONGEST_CHANGEOVER_S:
        errors["changeover_s"] = f"must be between 0 and {LONGEST_CHANGEOVER_S:,.0f} seconds"
    if terms.provisioner and terms.provisioner not in settings.PROVISIONERS:
        known = ", ".join(sorted(settings.PROVISIONERS)) or "none"
        errors["provisioner"] = f"must be empty or a name in the setting PROVISIONERS; these are {known}"
    if errors:
        raise BadParameters(errors)
    return MarketTerms(**{**asdict(terms), "name": name, "gpu_model": gpu_model})


def _taken(name: str) -> BadParameters:
    return BadParameters({"name": f"There is a market {name} already; choose another name."})
