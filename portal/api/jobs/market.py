"""A job on rented nodes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import CurrencyField, Word
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.core.market.plans import NAMES
from scheduler.core.market.types import NodeTerms
from scheduler.models import MarketDecision
from scheduler.selectors.jobs import get_job
from scheduler.selectors.markets.job_market import IDLE, decisions_on_market, job_market
from scheduler.selectors.policy import current_policy

LANES = [IDLE, *NodeTerms]


class SpanOut(serializers.Serializer[Any]):
    lane = Word(LANES, help_text="`idle`, or the kind of its nodes.")
    began_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null: it goes on.")
    gpus = serializers.IntegerField()
    nodes = serializers.CharField()


class MarketDecisionOut(serializers.ModelSerializer[MarketDecision]):
    market = serializers.CharField(source="market.name")

    class Meta:
        model = MarketDecision
        fields = ["market", "slot", "at", "spot", "on_demand", "decider", "inputs", "spent"]


class PlanOut(serializers.Serializer[Any]):
    plan = Word(
        NAMES,
        help_text="`portal`, what the portal does; `greedy`, on spot as far as safe: a"
        " yardstick that cannot be chosen.",
    )
    money = serializers.FloatField(help_text="The median over the windows played.")
    money_low = serializers.FloatField(help_text="Of an 80 % interval.")
    money_high = serializers.FloatField()
    in_time = serializers.FloatField(help_text="Chance to keep the deadline, 0 to 1.")
    lasts_s = serializers.FloatField(help_text="From the submission to the end, the median.")
    interruptions = serializers.FloatField(help_text="How often spot nodes go away, on average.")
    windows = serializers.IntegerField(help_text="Windows of the recorded market that were played.")
    cheapest = serializers.BooleanField(
        help_text="Of the plans to choose from that keep the deadline most often."
    )


class PlansOut(serializers.Serializer[Any]):
    market = serializers.CharField(
        source="market.name", default=None, allow_null=True, help_text="Null: none has nodes that suit it."
    )
    currency = CurrencyField()
    plans = PlanOut(many=True)
    note = serializers.CharField(help_text="Why there are not three plans; empty if there are.")


class JobMarketOut(serializers.Serializer[Any]):
    spans = SpanOut(many=True, help_text="Where it was, from its submission on.")
    currency = CurrencyField()
    spent = serializers.FloatField(allow_null=True, help_text="As `cost` of the job.")
    on_demand_only = serializers.FloatField(
        allow_null=True, help_text="What the same GPU time would have cost at on-demand prices."
    )
    saved = serializers.FloatField(allow_null=True)
    interruptions = serializers.IntegerField(help_text="Spot nodes that went away under it.")
    pace = serializers.FloatField(allow_null=True, help_text="Share of the work that is done.")
    time = serializers.FloatField(allow_null=True, help_text="Share of the time to the deadline.")
    next = serializers.CharField(help_text="The next decision, in a sentence.")
    planned = PlansOut(
        allow_null=True, help_text="As planned at submission; null without a deadline or until it is kept."
    )
    decisions = MarketDecisionOut(many=True)


class JobMarketApi(StrictView):
    @extend_schema(operation_id="jobs_market", responses=JobMarketOut)
    def get(self, request: ApiRequest, job_id: str) -> Response:
        """Where the job ran, what that cost and saved, and what comes next."""
        job = get_job(request.user, job_id)
        market = job_market(job, current_policy(), database_now())
        decisions = MarketDecisionOut(decisions_on_market(job), many=True).data
        return Response({**JobMarketOut(_with(market)).data, "decisions": decisions})


def _with(market: Any) -> dict[str, Any]:
    names = ("spans", "spent", "on_demand_only", "saved", "interruptions", "pace", "time", "next", "planned")
    return {**{name: getattr(market, name) for name in names}, "decisions": []}
