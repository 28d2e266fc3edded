"""The cost of a job with a deadline on its market, by plan."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.views import StrictView
from portal.api.jobs.market import PlansOut
from portal.api.jobs.requests import JobIn, job_body
from portal.clock import database_now
from scheduler.selectors.markets.plans import plans_for
from scheduler.services.jobs.recommend import USED, current_recommender, recommend


class PlansApi(StrictView):
    @extend_schema(operation_id="recommendations_plans", request=JobIn, responses=PlansOut)
    def post(self, request: ApiRequest) -> Response:
        """Three plans for a job with a deadline; nothing is stored.

        They are on demand, on spot as far as safe, and what the portal does.
        """
        values = job_body(request)
        if values.get("deadline_at") is None:
            raise ValidationError({"deadline_at": ["is needed: plans are made towards a deadline"]})
        used = {name: values[name] for name in USED if name in values}
        now = database_now()
        found = recommend(recommender=current_recommender(spot=True), **used, now=now)
        plans = plans_for(
            found.options, deadline_at=values["deadline_at"], budget=values.get("budget"), now=now
        )
        return Response(PlansOut(plans).data)
