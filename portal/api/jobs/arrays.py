"""Arrays: jobs over a list of values."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import WholeNumber
from portal.api.common.idempotent import KEY, create
from portal.api.jobs.requests import JobIn, with_objects
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

    jobs = serializers.SerializerMethodField()

    class Meta:
        model = JobArray
        fields = ["id", "limit", "submitted_at", "jobs"]

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


class ArraysApi(APIView):
    @extend_schema(operation_id="arrays_create", parameters=[KEY], request=ArrayIn, responses={201: ArrayOut})
    def post(self, request: ApiRequest) -> Response:
        """Submit a job for each of a list of values, all or none."""
        data = ArrayIn(data=request.data)
        data.is_valid(raise_exception=True)
        values = with_objects(user=request.user, values=data.validated_data)
        submit = partial(submit_array, owner=request.user, now=database_now(), **values)
        array, _ = create(
            request, make=lambda creation: submit(creation=creation), load=partial(get_array, request.user)
        )
        return _response(request, array.pk, status=201)


class ArrayApi(APIView):
    @extend_schema(operation_id="arrays_retrieve", responses=ArrayOut)
    def get(self, request: ApiRequest, array_id: str) -> Response:
        """One array with its jobs."""
        return _response(request, array_id)


class ArrayCancelApi(APIView):
    @extend_schema(operation_id="arrays_cancel", request=None, responses=ArrayCancelledOut)
    def post(self, request: ApiRequest, array_id: str) -> Response:
        """Cancel all jobs of an array that have not ended."""
        array = get_array(request.user, array_id)
        done = cancel_array(array=array, actor=request.user, now=database_now())
        body = ArrayOut(array, context={"user": request.user}).data
        return Response({**body, "cancelled": done.waiting, "stopping": done.stopping})


def _response(request: ApiRequest, array_id: str, *, status: int = 200) -> Response:
    array = get_array(request.user, array_id)
    return Response(ArrayOut(array, context={"user": request.user}).data, status=status)
