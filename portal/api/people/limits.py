"""Quotas of teams, what they used of them, and limits of people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from portal.accounts.models import Team, User
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Number, StrictSerializer, StrictText, WholeNumber, Word
from portal.api.common.viewsets import AdminWrites, Resource
from portal.api.jobs.terms import RankField
from portal.clock import database_now
from scheduler.core.job_terms import CLASSES, JOB_TERMS, MOST_RUN_S
from scheduler.core.quotas.receipt import Receipt
from scheduler.models import PersonLimit, TeamQuota
from scheduler.selectors.analysis.team_usage import TeamUsage
from scheduler.selectors.cluster.fair_shares import ShareUsed, share_of
from scheduler.selectors.quotas import default_limit, limit_of, quota_warnings, quotas_of, used_this_month
from scheduler.services.fair_shares import LEAST_WEIGHT, MOST_WEIGHT, set_weight
from scheduler.services.quotas import (
    MOST_GPUS,
    MOST_HOURS,
    LimitValues,
    QuotaValues,
    set_limit,
)
from scheduler.states import PriorityClass

MOST_QUOTAS = 100
USUAL = timedelta(days=30)


class QuotaIn(StrictSerializer):
    gpu_model = StrictText(
        max_length=100, allow_blank=True, default="", help_text="Empty: all models together."
    )
    guaranteed = WholeNumber(min_value=0, max_value=MOST_GPUS, help_text="GPUs that it may always use.")
    borrow_limit = WholeNumber(
        min_value=0, max_value=MOST_GPUS, allow_null=True, default=None,
        help_text="How many more it may use while they are idle; null: any.",
    )  # fmt: skip
    lending_limit = WholeNumber(
        min_value=0, max_value=MOST_GPUS, allow_null=True, default=None,
        help_text="How many of its guaranteed ones others may use while they are idle; null: all.",
    )  # fmt: skip


class QuotasIn(StrictSerializer):
    quotas = QuotaIn(many=True, max_length=MOST_QUOTAS)  # type: ignore[call-arg]  # the list's


class QuotaOut(serializers.ModelSerializer[TeamQuota]):
    class Meta:
        model = TeamQuota
        fields = ["gpu_model", "guaranteed", "borrow_limit", "lending_limit", "since"]


class QuotasOut(serializers.Serializer[Any]):
    quotas = QuotaOut(many=True)
    warnings = serializers.ListField(
        child=serializers.CharField(), help_text="Guarantees beyond the GPUs that are registered."
    )


class ReceiptOut(serializers.Serializer[Receipt]):
    guaranteed_s = serializers.FloatField(help_text="GPU-seconds, as are all of these.")
    used_s = serializers.FloatField()
    lent_s = serializers.FloatField(help_text="Guaranteed, idle, and used by others.")
    borrowed_s = serializers.FloatField(help_text="Used beyond what was guaranteed.")


class TeamUsageOut(serializers.Serializer[TeamUsage]):
    gpu_model = serializers.CharField(help_text="Empty: all models together.")
    total = ReceiptOut()


class UsageOut(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    usage = TeamUsageOut(many=True)


class LimitIn(StrictSerializer):
    running_jobs = WholeNumber(min_value=0, max_value=MOST_GPUS, allow_null=True, default=None)
    gpus = WholeNumber(min_value=0, max_value=MOST_GPUS, allow_null=True, default=None)
    gpu_hours_month = Number(min_value=0, max_value=MOST_HOURS, allow_null=True, default=None)
    max_class = RankField(JOB_TERMS["priority"], default=PriorityClass.NORMAL)
    max_run_s = WholeNumber(
        min_value=1, max_value=MOST_RUN_S, allow_null=True, default=None,
        help_text="The longest that each job may run; counts for jobs that are submitted from now on.",
    )  # fmt: skip


class LimitOut(serializers.ModelSerializer[PersonLimit]):
    """Null: any amount."""

    own = serializers.SerializerMethodField(help_text="False: those of everybody.")
    max_class = serializers.SerializerMethodField()
    gpu_hours_used = serializers.SerializerMethodField(help_text="Of this month, in the portal's zone.")

    class Meta:
        model = PersonLimit
        fields = [
            *("running_jobs", "gpus", "gpu_hours_month", "max_class", "max_run_s", "own", "gpu_hours_used")
        ]

    def get_own(self, limit: PersonLimit) -> bool:
        return limit.user_id is not None

    @extend_schema_field(Word(CLASSES))
    def get_max_class(self, limit: PersonLimit) -> str:
        return PriorityClass(limit.max_class).word

    def get_gpu_hours_used(self, _: PersonLimit) -> float | None:
        user: User | None = self.context["user"]
        return used_this_month([user.pk], database_now()).get(user.pk, 0.0) / 3600 if user else None


class ShareIn(StrictSerializer):
    weight = Number(
        min_value=LEAST_WEIGHT, max_value=MOST_WEIGHT, help_text="What its use is divided by; 1 is usual."
    )


class ShareOut(serializers.Serializer[ShareUsed]):
    weight = serializers.FloatField()
    used_gpu_s = serializers.FloatField(help_text="GPU-seconds, of which half count after seven days.")


class ShareResource(Resource):
    """Teams and people, who have a weight in fair shares."""

    moving = frozenset({"used_gpu_s"})
    takes = {"set_share": ShareIn}
    tells = {"share": ShareOut, "set_share": ShareOut}

    @action(detail=True)
    def share(self, request: Any, **_: Any) -> Response:
        """The weight in fair shares, and the use of GPUs.

        Of people your own, or for administrators.
        """
        return self.tell(share_of(self.get_object(), self.now))

    @share.mapping.put
    def set_share(self, request: Any, **_: Any) -> Response:
        """Let it weigh more or less than others (administrators)."""
        account = self.get_object()
        set_weight(of=account, **self.body(), **self.by)
        return self.tell(share_of(account, self.now))


class DefaultLimits(AdminWrites):
    """The limits of everybody without limits of their own."""

    serializer_class = LimitOut
    takes = {"update": LimitIn}

    def retrieve(self, request: ApiRequest) -> Response:
        """The limits of everybody without limits of their own."""
        return Response(limits_told(None))

    def update(self, request: ApiRequest) -> Response:
        """Set the limits of everybody without limits of their own (administrators)."""
        set_limit(user=None, values=LimitValues(**self.body()), **self.by)
        return Response(limits_told(None))


def quota_values(body: Mapping[str, Any]) -> list[QuotaValues]:
    return [QuotaValues(**values) for values in body["quotas"]]


def quotas_told(team: Team) -> Any:
    return QuotasOut({"quotas": quotas_of(team), "warnings": quota_warnings(team)}).data


def limits_told(user: User | None) -> Any:
    limit = (limit_of(user) if user else default_limit()) or PersonLimit()
    return LimitOut(limit, context={"user": user}).data
