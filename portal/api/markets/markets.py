"""Markets of rented nodes: terms, samples and forecasts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django_filters.rest_framework import FilterSet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from portal.api.common.fields import (
    CurrencyField,
    Name,
    Number,
    StrictBoolean,
    StrictSerializer,
    StrictText,
    WholeNumber,
    ZonedDateTime,
)
from portal.api.common.filters import TextFilter
from portal.api.common.ids import IdField
from portal.api.common.pages import PageQuery
from portal.api.common.viewsets import AdminWrites
from scheduler.models import Market, MarketOrder, MarketSample
from scheduler.selectors.markets.foreseen import foreseen, weights_in_force
from scheduler.selectors.markets.quotes import all_markets, samples_of, seen_now
from scheduler.services.markets.markets import MarketTerms, add_market, change_market, remove_market
from scheduler.services.markets.samples import SampleValues, append_samples

MOST_SAMPLES = 1000


class MarketIn(StrictSerializer):
    name = Name(max_length=100)
    gpu_model = StrictText(max_length=100, help_text="As nodes name it.")
    on_demand_price = Number(help_text="Per GPU hour.")
    gpus_per_node = WholeNumber(required=False)
    max_nodes = WholeNumber(required=False, help_text="The most that may be held at a time, of either kind.")
    provisioner = StrictText(
        max_length=50, required=False, allow_blank=True,
        help_text="A name of the setting PROVISIONERS; empty: nodes come and go by themselves.",
    )  # fmt: skip
    changeover_s = Number(required=False, help_text="From asking for a node until a job runs on it.")
    mix = StrictBoolean(
        required=False, help_text="May a job over several nodes be on spot and on-demand nodes at once?"
    )


class MarketFilter(FilterSet):
    name = TextFilter(max_length=100, lookup_expr="icontains", help_text="A part of the name.")
    gpu_model = TextFilter(max_length=100, help_text="The whole name, as nodes have it.")


class OrderOut(serializers.ModelSerializer[MarketOrder]):
    class Meta:
        model = MarketOrder
        fields = ["kind", "nodes", "accepted", "changed_at"]


class WeightOut(serializers.Serializer[Any]):
    decider = serializers.CharField()
    weight = serializers.FloatField()
    jobs = serializers.IntegerField(help_text="Ended jobs that it was learnt from.")


class MarketOut(serializers.ModelSerializer[Market]):
    id = IdField(Market)
    currency = CurrencyField()
    price = serializers.SerializerMethodField(help_text="The newest spot price of a GPU hour.")
    available = serializers.SerializerMethodField(help_text="Spot nodes; null where that is unknown now.")
    spot_nodes = serializers.IntegerField(help_text="That are here.")
    on_demand_nodes = serializers.IntegerField(help_text="That are here.")
    orders = OrderOut(many=True, help_text="Nodes that the policy wants to hold.")
    weights = serializers.SerializerMethodField(help_text="Of the deciders, as learnt.")
    replays = serializers.CharField(help_text="The recorded trace that it plays; empty: it is real.")

    class Meta:
        model = Market
        fields = [
            *("id", "name", "gpu_model", "gpus_per_node", "on_demand_price", "currency", "max_nodes"),
            *("provisioner", "changeover_s", "mix", "replays", "price", "available", "spot_nodes"),
            *("on_demand_nodes", "orders", "problem", "weights", "created_at"),
        ]

    def to_representation(self, market: Market) -> Any:
        self.seen = seen_now(market, self.context["now"])
        return super().to_representation(market)

    def get_price(self, _: Market) -> float | None:
        return self.seen.price

    def get_available(self, _: Market) -> int | None:
        return self.seen.available

    def get_weights(self, market: Market) -> list[dict[str, Any]]:
        return [
            WeightOut({"decider": name, "weight": weight, "jobs": jobs}).data
            for name, weight, jobs in weights_in_force(market)
        ]


class SampleIn(StrictSerializer):
    at = ZonedDateTime()
    price = Number(required=False, allow_null=True, help_text="Per GPU hour.")
    available = WholeNumber(required=False, allow_null=True, help_text="Spot nodes.")


class SamplesIn(StrictSerializer):
    samples = SampleIn(  # type: ignore[call-arg]  # the length is the list's
        many=True, max_length=MOST_SAMPLES, help_text="Each later than the one before, and than all so far."
    )


class SampleOut(serializers.ModelSerializer[MarketSample]):
    id = IdField(MarketSample)

    class Meta:
        model = MarketSample
        fields = ["id", "at", "price", "available", "source"]


class SamplesAdded(serializers.Serializer[Any]):
    added = serializers.IntegerField()


class HorizonOut(serializers.Serializer[Any]):
    ahead = serializers.IntegerField(help_text="Periods from now.")
    price = serializers.FloatField(allow_null=True)
    available = serializers.IntegerField(help_text="Spot GPUs.")
    price_by = serializers.CharField(help_text="The method that was lately best at this horizon.")
    available_by = serializers.CharField()
    price_error = serializers.FloatField(allow_null=True, help_text="Its mean absolute error so far.")
    available_error = serializers.FloatField(allow_null=True)


class ForecastOut(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    period_s = serializers.FloatField()
    horizons = HorizonOut(many=True, help_text="Empty where the present availability is unknown.")


class Markets(ListModelMixin, RetrieveModelMixin, AdminWrites):
    """Markets of rented nodes; everyone sees them, administrators keep them."""

    noun = "market"
    moving = frozenset(
        {"price", "available", "spot_nodes", "on_demand_nodes", "orders", "weights", "problem"}
    )
    about = {
        "list": "Markets with their present price and availability.",
        "retrieve": "One market.",
    }
    serializer_class = MarketOut
    queryset = all_markets()
    lookup_url_kwarg = "market_id"
    filterset_class = MarketFilter
    orders = {"name": "name", "created_at": "created_at"}
    takes = {"create": MarketIn, "partial_update": MarketIn, "add_samples": SamplesIn}
    tells = {"samples": SampleOut(many=True), "add_samples": {201: SamplesAdded}, "forecast": ForecastOut}
    query = {"samples": PageQuery}

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": self.now}

    def create(self, request: Any) -> Response:
        """Make a market known (administrators)."""
        terms = MarketTerms(**self.body())
        return self.made(lambda: add_market(terms=terms, **self.by))

    def partial_update(self, request: Any, market_id: str) -> Response:
        """Change some of its terms (administrators)."""
        market = change_market(market=self.get_object(), changes=self.body(), **self.by)
        return self.tell(self.row_of_key(market.pk))

    def destroy(self, request: Any, market_id: str) -> Response:
        """Forget a market that nothing uses (administrators)."""
        remove_market(market=self.get_object(), **self.by)
        return Response(status=204)

    @action(detail=True)
    def samples(self, request: Any, market_id: str) -> Response:
        """The samples of the market, newest first."""
        return self.pages(samples_of(self.get_object()), SampleOut)

    @samples.mapping.post
    def add_samples(self, request: Any, market_id: str) -> Response:
        """Append samples; nothing is kept if one is wrong (administrators)."""
        samples = [SampleValues(**one) for one in self.body()["samples"]]
        kept = append_samples(market=self.get_object(), samples=samples, **self.by)
        return Response({"added": len(kept)}, status=201)

    @action(detail=True)
    def forecast(self, request: Any, market_id: str) -> Response:
        """The forecast of the next market periods.

        It has the method that answers, and how far off it was.
        """
        horizons = foreseen(self.get_object(), self.now)
        forecast = {"at": self.now, "period_s": settings.SPOT_PERIOD_S, "horizons": horizons}
        return Response(ForecastOut(forecast).data)
