"""Markets: what rented nodes cost, how many there are, and what is foreseen."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.requests import PageRequest
from portal.clock import database_now
from portal.web.charts.markets import availability_chart, errors_chart, price_chart
from portal.web.common.access import refuse_others_than_admins
from portal.web.common.currency import in_currency
from portal.web.common.form_base import NameField, StyledForm
from portal.web.common.number_fields import NumberField, WholeNumberField
from portal.web.common.refusals import or_404, refusals_shown
from scheduler.errors import BadParameters
from scheduler.models import Market
from scheduler.selectors.cluster.inventory import inventory_models
from scheduler.selectors.markets.foreseen import foreseen, horizon_errors, weights_in_force
from scheduler.selectors.markets.interruptions import interruptions_per_node_hour
from scheduler.selectors.markets.quotes import all_markets, get_market, samples_of, seen_now
from scheduler.services.markets.markets import MarketTerms, add_market, change_market, remove_market

SHOWN_DAYS = 7
MOST_POINTS = 2000


class MarketForm(StyledForm):
    prefix_id = "market"
    name = NameField(max_length=100, help_text="Agents name it with --market.")
    gpu_model = forms.CharField(max_length=100, label="GPU model", help_text="As its nodes report it.")
    on_demand_price = NumberField(label="On-demand price of a GPU hour", help_text=in_currency)
    gpus_per_node = WholeNumberField(initial=1, label="GPUs per node")
    max_nodes = WholeNumberField(initial=1, label="Most nodes", help_text="Held at a time, of either kind.")
    changeover_s = NumberField(
        initial=120.0, label="Changeover in s", help_text="From asking for a node until a job runs on it."
    )
    provisioner = forms.ChoiceField(
        required=False, help_text="What rents its nodes; none: they come and go by themselves."
    )
    mix = forms.BooleanField(required=False, label="One job may be on spot and on-demand nodes at once")

    def computed_fields(self) -> dict[str, forms.Field]:
        self.fields["gpu_model"].widget.attrs["list"] = "market-gpus"
        names: Any = self.fields["provisioner"]
        names.choices = [("", "none"), *((name, name) for name in sorted(settings.PROVISIONERS))]
        return {}


@login_required
@require_http_methods(["GET", "POST"])
def market_list(request: PageRequest) -> HttpResponse:
    """Every market as it is now; administrators add one."""
    form = None
    if request.method == "POST":
        refuse_others_than_admins(request)
        form = MarketForm(request.POST)
        if form.is_valid() and (made := _added(request, form)):
            return redirect("market", made.pk)
    now = database_now()
    context = {
        "markets": [(market, seen_now(market, now)) for market in all_markets()],
        "form": (form or MarketForm()) if request.user.is_admin else None,
        "gpu_models": inventory_models(),
    }
    return render(request, "markets/list.html", context, status=400 if form else 200)


@login_required
@require_http_methods(["GET", "POST"])
def market_detail(request: PageRequest, market_id: int) -> HttpResponse:
    """One market over time; administrators change its terms."""
    market, form = or_404(get_market, market_id), None
    if request.method == "POST":
        refuse_others_than_admins(request)
        form = MarketForm(request.POST)
        if form.is_valid() and _changed(request, market, form):
            return redirect("market", market.pk)
    shown = form or MarketForm(initial={name: getattr(market, name) for name in MarketForm.base_fields})
    context = {**_page(market), "form": shown if request.user.is_admin else None}
    return render(request, "markets/detail.html", context, status=400 if form else 200)


@login_required
@require_POST
def remove(request: PageRequest, market_id: int) -> HttpResponse:
    """Forget a market that nothing uses."""
    refuse_others_than_admins(request)
    market = or_404(get_market, market_id)
    with refusals_shown(request):
        remove_market(market=market, actor=request.user, now=database_now())
        return redirect("markets")
    return redirect("market", market_id)


def _page(market: Market) -> dict[str, Any]:
    now, period_s = database_now(), settings.SPOT_PERIOD_S
    samples = list(samples_of(market, since=now - timedelta(days=SHOWN_DAYS)).reverse()[:MOST_POINTS])[::-1]
    ahead, weights = foreseen(market, now), weights_in_force(market)
    return {
        "market": market,
        "seen": seen_now(market, now),
        "orders": market.orders.all(),
        "interruptions": interruptions_per_node_hour(market, now),
        "weights": weights,
        "learnt": max((jobs for _, _, jobs in weights), default=0),
        "nodes": market.nodes.filter(removed_at=None).order_by("name"),
        "charts": [
            price_chart(market, samples, ahead, now, period_s),
            availability_chart(market, samples, ahead, now, period_s),
            errors_chart(horizon_errors(market)),
        ],
        "gpu_models": inventory_models(),
    }


def _added(request: PageRequest, form: MarketForm) -> Market | None:
    try:
        terms = MarketTerms(**form.cleaned_data)
        made = add_market(terms=terms, actor=request.user, now=database_now())
    except BadParameters as wrong:
        form.take(wrong.fields)
        return None
    messages.success(request, f"The market {made.name} was added.")
    return made


def _changed(request: PageRequest, market: Market, form: MarketForm) -> bool:
    with refusals_shown(request):
        try:
            change_market(market=market, changes=form.cleaned_data, actor=request.user, now=database_now())
        except BadParameters as wrong:
            form.take(wrong.fields)
    return not form.errors
