"""Promised figures, and codes with their texts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from knowledge.core.domain.types import Option, Source
from portal.api.common.fields import Word
from scheduler.states import FAILURE_CLASSES, FailureCode, WaitState

CHOSEN_BY = ("user", "recommended", "default")


class IntervalOut(serializers.Serializer[Any]):
    value = serializers.FloatField()
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class PromiseOut(serializers.Serializer[Any]):
    """The promise; intervals hold four in five times."""

    p_valid = serializers.FloatField()
    tokens_per_second = IntervalOut()
    peak_memory_bytes = IntervalOut()
    duration_s = IntervalOut()
    startup_s = serializers.FloatField()
    cost = IntervalOut()
    source = Word(Source)  # type: ignore[assignment]
    outside = serializers.BooleanField()
    steps = serializers.IntegerField()


def promise_fields(option: Option) -> dict[str, Any]:
    content = option.as_json()
    return {name: content[name] for name in map(str, PromiseOut().fields)}


class ChoiceOut(serializers.Serializer[Any]):
    value = serializers.JSONField()
    by = Word(CHOSEN_BY)
    reason = serializers.CharField()


class WaitOut(serializers.Serializer[Any]):
    code = Word(WaitState)
    text = serializers.CharField()


class FailureOut(serializers.Serializer[Any]):
    failure_class = Word(FAILURE_CLASSES, allow_blank=True)
    message = serializers.CharField()
    code = Word(FailureCode, allow_blank=True, help_text="What ended it, if not its own cause; else empty.")
