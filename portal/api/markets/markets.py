"""Markets of rented nodes: terms, samples and forecasts."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
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
from portal.api.common.idempotent import KEY, create, in_one_transaction
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import AdminWritesApi, StrictView
from portal.clock import database_now
from scheduler.models import Market, MarketOrder, MarketSample
from scheduler.selectors.markets.foreseen import foreseen, weights_in_force
from scheduler.selectors.markets.quotes import all_markets, get_market, samples_of, seen_now
from scheduler.services.markets.markets import MarketTerms, add_market, change_market, remove_market
from scheduler.services.markets.samples import SampleValues, append_samples

MOST_SAMPLES = 1000


class MarketChangeIn(StrictSerializer):
    """Fields that are left out stay as they are."""

    name = Name(max_length=100, required=False)
    gpu_model = StrictText(max_length=100, required=False, help_text="As nodes name it.")
    on_demand_price = Number(required=False, help_text="Per GPU hour.")
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


class MarketIn(MarketChangeIn):
    """A new market."""

    name = Name(max_length=100)
    gpu_model = StrictText(max_length=100, help_text="As nodes name it.")
    on_demand_price = Number(help_text="Per GPU hour.")


class OrderOut(serializers.ModelSerializer[MarketOrder]):
    class Meta:
        model = MarketOrder
        fields = ["kind", "nodes", "accepted", "changed_at"]


class WeightOut(serializers.Serializer[Any]):
    decider = serializers.CharField()
    weight = serializers.FloatField()
    jobs = serializers.IntegerField(help_text="Ended jobs that it was learnt from.")


class MarketOut(serializers.ModelSerializer[Market]):
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
            *("on_demand_nodes", "orders", "problem", "weights"),
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


class MarketsApi(AdminWritesApi):
    query = {"get": PageQuery}

    @extend_schema(operation_id="markets_list", responses=page_of(MarketOut))
    def get(self, request: ApiRequest) -> Response:
        """Markets with their present price and availability."""
        query, now = self.parameters, database_now()
        return Response(page(all_markets(), partial(_shown, now), **query))

    @extend_schema(
        operation_id="markets_create", parameters=[KEY], request=MarketIn, responses={201: MarketOut}
    )
    def post(self, request: ApiRequest) -> Response:
        """Make a market known (administrators)."""
        data = MarketIn(data=request.data)
        data.is_valid(raise_exception=True)
        terms, now = MarketTerms(**data.validated_data), database_now()
        make = partial(add_market, terms=terms, actor=request.user, now=now)
        made, _ = create(request, make=in_one_transaction(make), load=lambda pk: get_market(int(pk)))
        return Response(_shown(now, get_market(made.pk)), status=201)


class MarketApi(AdminWritesApi):
    @extend_schema(operation_id="markets_retrieve", responses=MarketOut)
    def get(self, request: ApiRequest, market_id: int) -> Response:
        """One market."""
        return Response(_shown(database_now(), get_market(market_id)))

    @extend_schema(operation_id="markets_change", request=MarketChangeIn, responses=MarketOut)
    def patch(self, request: ApiRequest, market_id: int) -> Response:
        """Change some of its terms (administrators)."""
        data, now = MarketChangeIn(data=request.data), database_now()
        data.is_valid(raise_exception=True)
        found = get_market(market_id)
        change_market(market=found, changes=data.validated_data, actor=request.user, now=now)
        return Response(_shown(now, get_market(market_id)))

    @extend_schema(operation_id="markets_remove", request=None, responses={204: None})
    def delete(self, request: ApiRequest, market_id: int) -> Response:
        """Forget a market that nothing uses (administrators)."""
        remove_market(market=get_market(market_id), actor=request.user, now=database_now())
        return Response(status=204)


class SamplesApi(AdminWritesApi):
    query = {"get": PageQuery}

    @extend_schema(operation_id="market_samples_list", responses=page_of(SampleOut))
    def get(self, request: ApiRequest, market_id: int) -> Response:
        """The samples of the market."""
        query = self.parameters
        return Response(page(samples_of(get_market(market_id)), SampleOut().to_representation, **query))

    @extend_schema(operation_id="market_samples_add", request=SamplesIn, responses={201: SamplesAdded})
    def post(self, request: ApiRequest, market_id: int) -> Response:
        """Append samples; nothing is kept if one is wrong (administrators)."""
        data = SamplesIn(data=request.data)
        data.is_valid(raise_exception=True)
        samples = [SampleValues(**one) for one in data.validated_data["samples"]]
        kept = append_samples(
            market=get_market(market_id), samples=samples, actor=request.user, now=database_now()
        )
        return Response({"added": len(kept)}, status=201)


class MarketForecastApi(StrictView):
    @extend_schema(operation_id="market_forecast", responses=ForecastOut)
    def get(self, request: ApiRequest, market_id: int) -> Response:
        """The forecast of the next market periods."""
        now = database_now()
        found = foreseen(get_market(market_id), now)
        forecast = {"at": now, "period_s": settings.SPOT_PERIOD_S, "horizons": found}
        return Response(ForecastOut(forecast).data)


def _shown(now: datetime, market: Market) -> Any:
    return MarketOut(market, context={"now": now}).data
