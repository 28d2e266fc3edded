"""Quotas of teams, what they used of them, and limits of people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import Team, User
from portal.accounts.permissions import AdminOnly, Scoped
from portal.accounts.requests import ApiRequest
from portal.accounts.selectors import visible_teams, visible_users
from portal.api.common.fields import Number, StrictSerializer, StrictText, WholeNumber
from portal.api.common.period import PeriodQuery, read_period
from portal.api.common.views import StrictView
from portal.api.jobs.terms import RankField
from portal.clock import database_now
from scheduler.core.job_terms import JOB_TERMS, MOST_RUN_S
from scheduler.core.quotas.receipt import Receipt
from scheduler.errors import NotFound
from scheduler.models import PersonLimit, TeamQuota
from scheduler.selectors.analysis.team_usage import TeamUsage, team_usage
from scheduler.selectors.cluster.fair_shares import ShareUsed, share_of
from scheduler.selectors.quotas import default_limit, limit_of, quota_warnings, quotas_of, used_this_month
from scheduler.services.fair_shares import LEAST_WEIGHT, MOST_WEIGHT, set_weight
from scheduler.services.quotas import (
    MOST_GPUS,
    MOST_HOURS,
    LimitValues,
    QuotaValues,
    set_limit,
    set_quotas,
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

    def get_max_class(self, limit: PersonLimit) -> str:
        return PriorityClass(limit.max_class).word

    def get_gpu_hours_used(self, _: PersonLimit) -> float | None:
        user: User | None = self.context["user"]
        return used_this_month([user.pk], database_now()).get(user.pk, 0.0) / 3600 if user else None


class AdminsPut(StrictView):
    """A resource that administrators write, and people read who may see it."""

    def get_permissions(self) -> list[BasePermission]:
        return [AdminOnly() if self.request.method in ("PUT", "DELETE") else Scoped()]


class QuotasApi(AdminsPut):
    @extend_schema(operation_id="quotas_list", responses=QuotasOut)
    def get(self, request: ApiRequest, team_id: int) -> Response:
        """The team's guarantees, for its members and administrators."""
        return _quotas(_team(request, team_id))

    @extend_schema(operation_id="quotas_set", request=QuotasIn, responses=QuotasOut)
    def put(self, request: ApiRequest, team_id: int) -> Response:
        """Set all quotas of a team: those that are not named end (administrators)."""
        team = _team(request, team_id)
        data = QuotasIn(data=request.data)
        data.is_valid(raise_exception=True)
        quotas = [QuotaValues(**values) for values in data.validated_data["quotas"]]
        set_quotas(team=team, quotas=quotas, actor=request.user, now=database_now())
        return _quotas(team)


class UsageApi(StrictView):
    query = {"get": PeriodQuery}

    @extend_schema(operation_id="teams_usage", responses=UsageOut)
    def get(self, request: ApiRequest, team_id: int) -> Response:
        """GPU time that the team was guaranteed, used, lent and borrowed in a period."""
        team = _team(request, team_id)
        now = database_now()
        period = read_period(self.parameters, usual=USUAL, now=now)
        content = {"since": period.start, "until": period.end, "usage": team_usage(team, period, now)}
        return Response(UsageOut(content).data)


class ShareIn(StrictSerializer):
    weight = Number(
        min_value=LEAST_WEIGHT, max_value=MOST_WEIGHT, help_text="What its use is divided by; 1 is usual."
    )


class ShareOut(serializers.Serializer[ShareUsed]):
    weight = serializers.FloatField()
    used_gpu_s = serializers.FloatField(help_text="GPU-seconds, of which half count after seven days.")


class TeamShareApi(AdminsPut):
    @extend_schema(operation_id="teams_share", responses=ShareOut)
    def get(self, request: ApiRequest, team_id: int) -> Response:
        """The team's weight in fair shares, and its use of GPUs."""
        return _share(_team(request, team_id))

    @extend_schema(operation_id="teams_share_set", request=ShareIn, responses=ShareOut)
    def put(self, request: ApiRequest, team_id: int) -> Response:
        """Let a team weigh more or less than others (administrators)."""
        return _set_share(request, _team(request, team_id))


class UserShareApi(AdminsPut):
    @extend_schema(operation_id="users_share", responses=ShareOut)
    def get(self, request: ApiRequest, user_id: int) -> Response:
        """A person's weight and use: your own, or anybody's for administrators."""
        return _share(_user(request, self, user_id))

    @extend_schema(operation_id="users_share_set", request=ShareIn, responses=ShareOut)
    def put(self, request: ApiRequest, user_id: int) -> Response:
        """Let a person weigh more or less than others (administrators)."""
        return _set_share(request, _user(request, self, user_id))


class LimitsApi(AdminsPut):
    @extend_schema(operation_id="limits_retrieve", responses=LimitOut)
    def get(self, request: ApiRequest, user_id: int) -> Response:
        """The limits of a person: your own, or anybody's for administrators."""
        return _limits(_user(request, self, user_id))

    @extend_schema(operation_id="limits_set", request=LimitIn, responses=LimitOut)
    def put(self, request: ApiRequest, user_id: int) -> Response:
        """Give a person limits of their own (administrators)."""
        user = _user(request, self, user_id)
        set_limit(user=user, values=_limit_values(request), actor=request.user, now=database_now())
        return _limits(user)

    @extend_schema(operation_id="limits_remove", request=None, responses={200: LimitOut})
    def delete(self, request: ApiRequest, user_id: int) -> Response:
        """Let the limits of everybody hold for a person again (administrators)."""
        user = _user(request, self, user_id)
        set_limit(user=user, values=None, actor=request.user, now=database_now())
        return _limits(user)


class DefaultLimitsApi(AdminsPut):
    @extend_schema(operation_id="limits_default", responses=LimitOut)
    def get(self, request: ApiRequest) -> Response:
        """The limits of everybody without limits of their own."""
        return _limits(None)

    @extend_schema(operation_id="limits_default_set", request=LimitIn, responses=LimitOut)
    def put(self, request: ApiRequest) -> Response:
        """Set the limits of everybody without limits of their own (administrators)."""
        set_limit(user=None, values=_limit_values(request), actor=request.user, now=database_now())
        return _limits(None)


def _team(request: ApiRequest, team_id: int) -> Team:
    found = visible_teams(request.user).filter(pk=team_id).first()
    if found is None:
        raise NotFound("There is no such team of yours.")
    return found


def _user(request: ApiRequest, view: APIView, user_id: int) -> User:
    if user_id == request.user.pk:
        return request.user
    others = visible_users(request.user) if AdminOnly().has_permission(request, view) else User.objects.none()
    found = others.filter(pk=user_id).first()
    if found is None:
        raise NotFound("There is no such user.")
    return found


def _share(account: Team | User) -> Response:
    return Response(ShareOut(share_of(account, database_now())).data)


def _set_share(request: ApiRequest, account: Team | User) -> Response:
    data = ShareIn(data=request.data)
    data.is_valid(raise_exception=True)
    set_weight(of=account, actor=request.user, now=database_now(), **data.validated_data)
    return _share(account)


def _quotas(team: Team) -> Response:
    return Response(QuotasOut({"quotas": quotas_of(team), "warnings": quota_warnings(team)}).data)


def _limits(user: User | None) -> Response:
    limit = (limit_of(user) if user else default_limit()) or PersonLimit()
    return Response(LimitOut(limit, context={"user": user}).data)


def _limit_values(request: ApiRequest) -> LimitValues:
    data = LimitIn(data=request.data)
    data.is_valid(raise_exception=True)
    return LimitValues(**data.validated_data)
