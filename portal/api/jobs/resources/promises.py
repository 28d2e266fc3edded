"""Promised figures, and codes with their texts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from knowledge.core.domain.types import Option, Source


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
    source = serializers.ChoiceField(choices=[source.value for source in Source])  # type: ignore[assignment]
    outside = serializers.BooleanField()
    steps = serializers.IntegerField()


def promise_fields(option: Option) -> dict[str, Any]:
    content = option.as_json()
    return {name: content[name] for name in map(str, PromiseOut().fields)}


class ChoiceOut(serializers.Serializer[Any]):
    value = serializers.JSONField()
    by = serializers.ChoiceField(choices=["user", "recommended", "default"])
    reason = serializers.CharField()


class CodeAndText(serializers.Serializer[Any]):
    code = serializers.CharField()
    text = serializers.CharField()


class FailureOut(serializers.Serializer[Any]):
    failure_class = serializers.CharField(help_text="user, resource or system")
    message = serializers.CharField()
    code = serializers.CharField(help_text="`time-limit`, where that ended it; else empty.")
