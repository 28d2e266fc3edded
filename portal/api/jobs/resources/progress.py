"""Events and lines of progress of a job."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.common.fields import Word
from portal.events.models import Event
from portal.events.types import EventType
from scheduler.models import Metric
from scheduler.states import JobState, StopFor
from trainer.step_metrics import STEP_METRICS, StepMetric

EVENT_TYPES = [type for type in EventType if type.about == "job"]


class EventOut(serializers.ModelSerializer[Event]):
    number = serializers.IntegerField(help_text="The version of the job that it made.")
    type = Word(EVENT_TYPES)
    old = Word(JobState, allow_blank=True, help_text="Its state before; empty at its submission.")
    new = Word(JobState, allow_blank=True, help_text="Its state after; empty where that is as before.")
    stop_for = Word(StopFor, allow_blank=True, help_text="Why it stops; empty unless it does.")

    class Meta:
        model = Event
        fields = ["number", "type", "old", "new", "stop_for", "reason", "data", "at"]


class MetricOut(serializers.ModelSerializer[Metric]):
    """A line of progress, with the step metrics of the trainer's table."""

    attempt = serializers.IntegerField(source="attempt.fence", help_text="Its number.")

    class Meta:
        model = Metric
        fields = ["id", "attempt", "step", "at"]

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), **{m.public_name: _metric_field(m) for m in STEP_METRICS}}


def _metric_field(metric: StepMetric) -> serializers.Field[Any, Any, Any, Any]:
    """Null where the node did not report it."""
    kind = serializers.IntegerField if metric.whole else serializers.FloatField
    source = None if metric.column else f"others.{metric.name}"
    unit = metric.unit and f" in {metric.unit}"
    help_text = f"{metric.label.capitalize()}{unit}: {metric.help}."
    return kind(read_only=True, allow_null=True, help_text=help_text, source=source)
