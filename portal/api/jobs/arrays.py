"""Arrays: jobs over a list of values."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import WholeNumber
from portal.api.common.idempotent import KEY, create, created
from portal.api.common.refs import UserRef
from portal.api.common.views import StrictView
from portal.api.jobs.jobs import checked, token_name
from portal.api.jobs.requests import JobIn, ReasonIn, with_objects
from portal.api.jobs.resources import JobBrief
from portal.api.jobs.terms import Params
from portal.clock import database_now
from scheduler.models import JobArray
from scheduler.selectors.jobs import array_jobs, get_array
from scheduler.services.jobs.arrays import FEWEST, MOST, cancel_array, submit_array


class ArrayIn(JobIn):
    values = serializers.ListField(
        child=Params(),
        min_length=FEWEST,
        max_length=MOST,
        help_text="Parameters of each job, over those of `params`.",
    )
    limit = WholeNumber(
        min_value=1, max_value=MOST, required=False, allow_null=True, help_text="How many may run at a time."
    )


class ArrayOut(serializers.ModelSerializer[JobArray]):
    """An array with its jobs, in the order of its values."""

    owner = UserRef(read_only=True)
    created_at = serializers.DateTimeField(source="submitted_at", read_only=True)
    jobs = serializers.SerializerMethodField()

    class Meta:
        model = JobArray
        fields = ["id", "owner", "limit", "created_at", "ended_at", "jobs"]

    @extend_schema_field(JobBrief(many=True))
    def get_jobs(self, array: JobArray) -> Any:
        context = {"now": SimpleLazyObject(database_now)}
        return JobBrief(array_jobs(self.context["user"], array), many=True, context=context).data


class ArrayCancelledOut(ArrayOut):
    """The array, and what the request did."""

    cancelled = serializers.IntegerField(help_text="Jobs that this request ended.")
    stopping = serializers.IntegerField(help_text="Jobs that end once their nodes have stopped them.")

    class Meta(ArrayOut.Meta):
        fields = [*ArrayOut.Meta.fields, "cancelled", "stopping"]


class ArraysApi(StrictView):
    @extend_schema(operation_id="arrays_create", parameters=[KEY], request=ArrayIn, responses={201: ArrayOut})
    def post(self, request: ApiRequest) -> Response:
        """Submit a job for each of a list of values, all or none."""
        values = with_objects(user=request.user, values=checked(ArrayIn, request))
        submit = partial(
            submit_array, owner=request.user, now=database_now(), token=token_name(request), **values
        )
        array, made = create(
            request, make=lambda creation: submit(creation=creation), load=partial(get_array, request.user)
        )
        return created(_shown(request, array.pk), path=f"{request.path}{array.pk}/", made=made)


class ArrayApi(StrictView):
    @extend_schema(operation_id="arrays_retrieve", responses=ArrayOut)
    def get(self, request: ApiRequest, array_id: str) -> Response:
        """One array with its jobs."""
        return Response(_shown(request, array_id))


class ArrayCancelApi(StrictView):
    @extend_schema(operation_id="arrays_cancel", request=ReasonIn, responses=ArrayCancelledOut)
    def post(self, request: ApiRequest, array_id: str) -> Response:
        """Cancel all jobs of an array that have not ended."""
        reason = checked(ReasonIn, request)["reason"]
        array = get_array(request.user, array_id)
        done = cancel_array(array=array, actor=request.user, now=database_now(), reason=reason)
        shown = _shown(request, array_id)
        return Response({**shown, "cancelled": done.waiting, "stopping": done.stopping})


def _shown(request: ApiRequest, array_id: str) -> dict[str, Any]:
    array = get_array(request.user, array_id)
    return dict(ArrayOut(array, context={"user": request.user}).data)
