"""A policy on probation: starting it, its comparison, ending it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, StrictText
from portal.api.common.refs import UserRef
from portal.api.common.viewsets import AdminResource
from scheduler.core.policies import POLICIES
from scheduler.core.policies.parameters import values_of
from scheduler.selectors.cluster.shadow import Comparison, compared, shadows
from scheduler.services.shadow import end_shadow, start_shadow


class OutcomeOut(serializers.Serializer[Any]):
    started = serializers.IntegerField()
    waited_s = serializers.FloatField(
        allow_null=True, help_text="Mean time to the first start, up to now where there is none yet."
    )
    jct_s = serializers.FloatField(
        allow_null=True,
        help_text="Mean time from submission to the end, of the jobs that have ended under both.",
    )
    stops = serializers.IntegerField(help_text="Of running jobs, moves included.")


class MovedStartOut(serializers.Serializer[Any]):
    job = serializers.CharField(source="job.pk")
    started_at = serializers.DateTimeField(allow_null=True)
    shadow_started_at = serializers.DateTimeField(allow_null=True)
    by_s = serializers.FloatField(help_text="Below 0: it would start earlier.")


class ShadowOut(serializers.Serializer[Any]):
    policy = serializers.CharField(source="shadow.policy")
    parameters = serializers.SerializerMethodField()
    reason = serializers.CharField(source="shadow.reason")
    actor = UserRef(source="shadow.started_by", allow_null=True)
    started_at = serializers.DateTimeField(source="shadow.started_at")
    ended_at = serializers.DateTimeField(source="shadow.ended_at", allow_null=True)
    at = serializers.DateTimeField(source="shadow.at", help_text="Up to when it has decided.")
    trouble = serializers.CharField(
        source="shadow.trouble", help_text="Why it could not decide last time; empty if it could."
    )
    jobs = serializers.IntegerField(help_text="How many had not started when the probation began.")
    ended = serializers.IntegerField(help_text="How many of them have ended under both policies.")
    real = OutcomeOut()
    shadow = OutcomeOut(source="shadowed")
    earlier = serializers.IntegerField(help_text="Jobs that it would start over a minute earlier.")
    later = serializers.IntegerField(help_text="Jobs that it would start over a minute later.")
    moved = MovedStartOut(many=True, help_text="Those whose starts lie farthest apart.")

    def get_parameters(self, compared: Comparison) -> dict[str, Any]:
        return values_of(POLICIES[compared.shadow.policy], compared.shadow.parameters)


class ShadowsOut(serializers.Serializer[Any]):
    current = ShadowOut(allow_null=True)
    past = ShadowOut(many=True, help_text="Probations that have ended, newest first.")


class ShadowIn(StrictSerializer):
    name = StrictText(max_length=40)
    reason = StrictText(max_length=500, allow_blank=True, default="")
    parameters = serializers.DictField(
        default=dict, help_text="Of the policy's parameters those that are to differ from its defaults."
    )


class Probation(AdminResource):
    """The policy on probation; there is one at a time."""

    serializer_class = ShadowsOut
    takes = {"start": ShadowIn}
    tells = {"start": {201: ShadowsOut}}

    def retrieve(self, request: ApiRequest) -> Response:
        """The policy on probation beside the one that decides, and earlier probations."""
        return Response(_shown())

    def start(self, request: ApiRequest) -> Response:
        """Let another policy decide in the shadow; nothing of it is carried out."""
        start_shadow(**self.body(), **self.by)
        return Response(_shown(), status=201)

    def end(self, request: ApiRequest) -> Response:
        """End the probation; its figures stay."""
        end_shadow(**self.by)
        return Response(status=204)


def _shown() -> dict[str, Any]:
    current, past = shadows()
    ended = [compared(shadow) for shadow in past]
    return ShadowsOut({"current": compared(current) if current else None, "past": ended}).data
