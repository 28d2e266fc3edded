"""Comparisons of policies on the portal's own past, for administrators."""

from __future__ import annotations

from functools import partial
from typing import Any

from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from portal.api.common.fields import (
    ChoiceField,
    CurrencyField,
    Number,
    StrictSerializer,
    StrictText,
    WholeNumber,
    Word,
    ZonedDateTime,
)
from portal.api.common.refs import UserRef
from portal.api.common.viewsets import AdminResource
from scheduler.models import Simulation
from scheduler.selectors.simulations import all_simulations
from scheduler.services.simulations.request import (
    MAX_ERROR,
    MAX_POLICIES,
    MAX_SEED,
    SimulationRequest,
    request_simulation,
)
from scheduler.simulator.world.predictions import Fidelity


class SimulationIn(StrictSerializer):
    policies = serializers.ListField(
        child=StrictText(max_length=40),
        min_length=1,
        max_length=MAX_POLICIES,
        help_text="Names; see /api/policy/.",
    )
    knowledge = ChoiceField(
        choices=[level.value for level in Fidelity], default=Fidelity.ORACLE.value,
        help_text="Predictions known to the policies; `performance`: the promises made at submission.",
    )  # fmt: skip
    error = Number(
        min_value=0, max_value=MAX_ERROR, default=0.0,
        help_text="Median prediction error for `performance` where no promise was recorded; 0.2 is 20 %.",
    )  # fmt: skip
    seed = WholeNumber(min_value=0, max_value=MAX_SEED, default=0)
    cluster = StrictText(
        max_length=500, allow_blank=True, default="",
        help_text="GPU:nodes x GPUs per node @price, e.g. a100:8x8,l40s:4x4@1.1, with models that"
        " nodes here have or had; where GPUs sit:"
        " a100:8x8/numa=4 (also socket, pcie, nvlink); empty: the nodes as they came, failed and went.",
    )  # fmt: skip
    since = ZonedDateTime(required=False, help_text="Only jobs submitted at this time or later.")
    until = ZonedDateTime(required=False, help_text="Only jobs submitted before this time; now by default.")


class SimulationBrief(serializers.ModelSerializer[Simulation]):
    knowledge = Word(Fidelity)
    actor = UserRef(source="requested_by", allow_null=True, help_text="Who asked for it.")
    created_at = serializers.DateTimeField(source="requested_at")

    class Meta:
        model = Simulation
        fields = [
            *("id", "state", "message", "progress", "actor", "created_at", "ended_at"),
            *("since", "until", "cluster", "as_it_was", "policies", "knowledge", "error", "seed"),
        ]
        extra_kwargs = {
            "as_it_was": {"help_text": "On the nodes as they came, failed and went, instead of `cluster`."}
        }


class JctOut(serializers.Serializer[Any]):
    jct_mean_s = serializers.FloatField()
    jct_p95_s = serializers.FloatField()


class ReproductionOut(serializers.Serializer[Any]):
    policies = serializers.ListField(child=serializers.CharField(), help_text="That decided at that time.")
    trouble = serializers.CharField(help_text="Why that time could not be played as it was; mostly empty.")
    jobs = serializers.IntegerField(required=False, help_text="That succeeded really and in the simulation.")
    left_out = serializers.IntegerField(required=False, help_text="That succeeded really alone.")
    real = JctOut(required=False)
    simulated = JctOut(required=False)


class SimulationOut(SimulationBrief):
    results = serializers.ListField(
        child=serializers.DictField(), help_text="One object per policy with all simulated measures."
    )
    left_out = serializers.IntegerField(
        read_only=True, help_text="Jobs of the range that were not simulated; no figure counts them."
    )
    refusals = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="The first jobs that were left out, with the reasons.",
    )

    reproduction = ReproductionOut(
        allow_null=True, read_only=True,
        help_text="The time as it was, under its own policies and rules: real and simulated. Null: not yet.",
    )  # fmt: skip
    currency = CurrencyField()

    class Meta(SimulationBrief.Meta):
        fields = [*SimulationBrief.Meta.fields, "reproduction", "results", "left_out", "refusals", "currency"]


class Simulations(ListModelMixin, RetrieveModelMixin, AdminResource):
    """Policies compared on jobs that ran here."""

    noun, is_named = "simulation", False
    about = {
        "list": "All simulations, newest first, without their figures.",
        "retrieve": "One simulation with its figures so far.",
    }
    serializer_class = SimulationOut
    queryset = all_simulations()
    lookup_url_kwarg = "simulation_id"
    takes = {"create": SimulationIn}
    tells = {"list": SimulationBrief}
    orders = {"created_at": "requested_at", "ended_at": "ended_at"}

    def create(self, request: Any) -> Response:
        """Compare policies on jobs that ran here.

        A worker runs the simulation; the result is not ready at once.
        """
        ask = partial(request_simulation, question=SimulationRequest(**self.body()), **self.by)
        return self.made_by(lambda creation: ask(creation=creation))
