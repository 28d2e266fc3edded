"""People's choices about values that were read, as counts without any text."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import Word
from portal.api.common.pages import list_of
from portal.api.common.views import StrictView
from scheduler.models import ReadSource, ReadValueCount
from scheduler.selectors.analysis.readings import read_value_counts


class ReadValueCountOut(serializers.ModelSerializer[ReadValueCount]):
    kept = serializers.IntegerField(help_text="Submitted as read.")
    changed = serializers.IntegerField(help_text="Submitted with another value.")
    cleared = serializers.IntegerField(help_text="Left to the recommendation after all.")

    class Meta:
        model = ReadValueCount
        fields = ["kept", "changed", "cleared"]

    def get_fields(self) -> dict[str, Any]:
        return {"field": serializers.CharField(), "source": Word(ReadSource), **super().get_fields()}


class ReadValuesApi(StrictView):
    @extend_schema(operation_id="read_values_list", responses=list_of(ReadValueCountOut))
    def get(self, request: ApiRequest) -> Response:
        """The fate of values that sentences and scripts filled, by field."""
        return Response({"data": ReadValueCountOut(read_value_counts(), many=True).data})
