"""A sentence, read into the values of a job.

Nothing is stored and nothing is submitted.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from portal.accounts import time_zones
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, StrictText, Word
from portal.api.common.views import StrictView
from portal.clock import database_now
from portal.intents.core.combine import shown
from portal.intents.core.types import MAX_CHARACTERS, Question
from portal.intents.services import Understood, understand
from scheduler.services.provenance.read_values import ORIGINS
from scheduler.services.provenance.sealed import sealed


class IntentIn(StrictSerializer):
    text = StrictText(
        max_length=MAX_CHARACTERS, trim_whitespace=False, help_text="What is to be trained, in English."
    )
    timezone = StrictText(
        max_length=64, required=False, help_text="Of clock times in the text; without it your own."
    )
    now = serializers.DateTimeField(
        required=False, help_text="Times count from here instead of the present (administrators)."
    )


class Span(serializers.ListField):
    """The first character of some words, and the one after the last."""

    child = serializers.IntegerField(min_value=0)


class IntentFieldOut(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="As a job's own field; files by name.")
    origin = Word(ORIGINS)
    words = Span(allow_null=True, help_text="The words of the text that say so.")
    note = serializers.CharField()


class OfferOut(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="As the body of a job takes it.")

    def get_fields(self) -> dict[str, Any]:
        return {"field": serializers.CharField(), **super().get_fields(), "label": serializers.CharField()}


class QuestionOut(serializers.Serializer[Any]):
    text = serializers.CharField()
    choices = OfferOut(many=True)

    def get_fields(self) -> dict[str, Any]:
        return {"field": serializers.CharField(), **super().get_fields()}


class IntentOut(serializers.Serializer[Any]):
    question = QuestionOut(allow_null=True)
    unknown = serializers.ListField(child=Span(), help_text="Words that nothing was made of.")
    complaints = serializers.DictField(
        child=serializers.CharField(),
        help_text="Why a submission would refuse a value, or could only wait with it, by field.",
    )
    notes = serializers.ListField(child=serializers.CharField())
    draft = serializers.DictField(
        help_text="The body for POST /api/jobs/, as far as the text says it; `reading` keeps where from."
    )

    def get_fields(self) -> dict[str, Any]:
        return {"fields": serializers.DictField(child=IntentFieldOut()), **super().get_fields()}


class IntentsApi(StrictView):
    @extend_schema(operation_id="intents_create", request=IntentIn, responses=IntentOut)
    def post(self, request: ApiRequest) -> Response:
        """Read a sentence into the values of a job.

        Nothing is stored and nothing is submitted.
        """
        data = IntentIn(data=request.data)
        data.is_valid(raise_exception=True)
        values = data.validated_data
        if "now" in values and not request.user.is_admin:
            raise ValidationError({"now": ["is for administrators; leave it out"]})
        now = values.get("now") or database_now()
        zone = time_zones.zone_for(values.get("timezone") or request.user.time_zone, "")
        if zone is None and "timezone" in values:
            raise ValidationError({"timezone": ["is no time zone; give one such as Europe/Berlin"]})
        zone_or_portals = zone or timezone.get_default_timezone()
        found = understand(user=request.user, text=values["text"], now=now, zone=zone_or_portals)
        body = intent_json(found)
        if seal := sealed(request.user, found.read_values):
            body["draft"] = {**body["draft"], "reading": seal}
        return Response(IntentOut(body).data)


def intent_json(found: Understood) -> dict[str, Any]:
    """The reading of the sentence, as JSON."""
    fields = {
        name: {"value": shown(one.value), "origin": one.origin, "words": one.words, "note": one.note}
        for name, one in found.reading.fields.items()
    }
    return {
        "fields": fields,
        "question": found.question and _question(found.question),
        "unknown": found.reading.unknown,
        "complaints": found.complaints,
        "notes": found.reading.notes,
        "draft": found.draft,
    }


def _question(question: Question) -> dict[str, Any]:
    choices = [{"field": o.field, "value": shown(o.value), "label": o.label} for o in question.choices]
    return {"field": question.field, "text": question.text, "choices": choices}
