"""Use and cost of jobs in a period."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.models import Team, User
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import CurrencyField
from portal.api.common.ids import IdField
from portal.api.common.period import PeriodQuery, read_period
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.selectors.analysis.spending import SpendingLine, visible_spending

USUAL = timedelta(days=30)


class SpendingLineOut(serializers.Serializer[SpendingLine]):
    id: Any = serializers.CharField(allow_null=True, help_text="Null for the total.")
    name = serializers.CharField()
    jobs = serializers.IntegerField(help_text="That held a GPU in the period.")
    gpu_s = serializers.FloatField(help_text="Seconds of GPUs held, waiting and pauses left out.")
    cost = serializers.FloatField(
        source="cost.amount", default=None, allow_null=True, help_text="Null where no GPU had a price."
    )
    estimated = serializers.BooleanField(source="cost.estimated", default=False)


class TeamLineOut(SpendingLineOut):
    id = IdField(Team, source=None, allow_null=True, help_text="Null for jobs of no team.")


class PersonLineOut(SpendingLineOut):
    id = IdField(User, source=None)


class SpendingOut(serializers.Serializer[dict[str, Any]]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    currency = CurrencyField()
    by_team = TeamLineOut(many=True)
    by_person = PersonLineOut(many=True)
    by_node = SpendingLineOut(many=True)
    total = SpendingLineOut()


class SpendingApi(StrictView):
    query = {"get": PeriodQuery}

    @extend_schema(operation_id="spending_retrieve", responses=SpendingOut)
    def get(self, request: ApiRequest) -> Response:
        """GPU time and cost of the jobs that you may see, by team, by person and by node.

        An allocation counts for its part within the period, at the prices that held then.
        """
        query = self.parameters
        now = database_now()
        period = read_period(query, usual=USUAL, now=now)
        found = visible_spending(request.user, period, now)
        content: dict[str, Any] = {"since": period.start, "until": period.end}
        content |= {name: getattr(found, name) for name in ("by_team", "by_person", "by_node", "total")}
        return Response(SpendingOut(content).data)
