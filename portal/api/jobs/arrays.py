"""Arrays: jobs over a list of values."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import SimpleLazyObject
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import WholeNumber
from portal.api.common.idempotent import create, created
from portal.api.common.pages import CursorPages
from portal.api.common.refs import UserRef
from portal.api.common.viewsets import Resource
from portal.api.jobs.jobs import token_name
from portal.api.jobs.requests import JobIn, ReasonIn, with_objects
from portal.api.jobs.resources import JobBrief
from portal.api.jobs.terms import Params
from portal.clock import database_now
from scheduler.models import JobArray
from scheduler.selectors.jobs import all_visible_arrays, array_jobs, get_array, jobs_by_state, no_arrays
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


class ArrayBrief(ArrayOut):
    """An array without its jobs."""

    states = serializers.SerializerMethodField(help_text="How many of the jobs that you see are in each.")

    class Meta(ArrayOut.Meta):
        fields = ["id", "owner", "limit", "created_at", "ended_at", "states"]

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_states(self, array: JobArray) -> Any:
        return self.context["states"].get(array.pk, {})


class Arrays(Resource):
    """Jobs over a list of values."""

    noun, is_named = "array", False
    moving = frozenset({"jobs"})
    serializer_class = ArrayOut
    queryset = no_arrays()
    lookup_url_kwarg = "array_id"
    takes = {"create": ArrayIn, "cancel": ReasonIn}
    tells = {"list": ArrayBrief(many=True), "cancel": ArrayCancelledOut}

    def get_queryset(self) -> QuerySet[JobArray]:
        return all_visible_arrays(self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "user": self.request.user}

    def list(self, request: ApiRequest) -> Response:
        """The arrays of which you see a job, newest first."""
        pages = CursorPages()
        found = pages.paginate_queryset(self.get_queryset(), request, self)
        states = jobs_by_state(request.user, [array.pk for array in found])
        context = {**self.get_serializer_context(), "states": states}
        return pages.get_paginated_response(ArrayBrief(found, many=True, context=context).data)

    def create(self, request: ApiRequest) -> Response:
        """Submit a job for each of a list of values, all or none."""
        values = with_objects(user=request.user, values=self.body())
        submit = partial(submit_array, owner=request.user, now=self.now, token=token_name(request), **values)
        array, made = create(
            request, make=lambda creation: submit(creation=creation), load=partial(get_array, request.user)
        )
        shown = self.shown(get_array(request.user, array.pk))
        return created(shown, path=f"{request.path}{array.pk}/", made=made)

    def retrieve(self, request: ApiRequest, array_id: str) -> Response:
        """One array with its jobs."""
        return self.tell(get_array(request.user, array_id))

    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, array_id: str) -> Response:
        """Cancel all jobs of an array that have not ended."""
        array = get_array(request.user, array_id)
        done = cancel_array(array=array, **self.body(), **self.by)
        shown = ArrayOut(get_array(request.user, array_id), context=self.get_serializer_context()).data
        return Response({**shown, "cancelled": done.waiting, "stopping": done.stopping})
