"""Figures of jobs as programs see them; docs/figures.md defines each."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.common.fields import Word
from scheduler.core.job_warnings import Risk
from scheduler.core.spending import Spent
from scheduler.selectors.cluster.job_silence import JobSilence
from scheduler.selectors.figures.job import JobFigures
from scheduler.selectors.figures.promise import PredictedAndActual
from scheduler.selectors.figures.times import Ending
from scheduler.selectors.figures.warnings import JobWarning
from scheduler.selectors.public_states import PUBLIC_STATES


class EndOut(serializers.Serializer[Ending]):
    """When the job will end.

    The bounds are those of an interval that holds four times in five.
    """

    at = serializers.DateTimeField()
    earliest = serializers.DateTimeField()
    latest = serializers.DateTimeField()


class WarningOut(serializers.Serializer[JobWarning]):
    """A limit that the job will probably pass, and what can be done."""

    code = Word(Risk)
    text = serializers.CharField()
    remedy = serializers.CharField()
    since = serializers.DateTimeField()


class ProgressOut(serializers.Serializer[JobFigures]):
    """Progress as of the last report.

    `tokens_per_second` is told while the job trains, `eta_s` and `end` while it runs, none of them while
    nothing is heard of it.
    """

    step = serializers.IntegerField()
    total_steps = serializers.IntegerField(allow_null=True)
    loss = serializers.FloatField(allow_null=True)
    tokens_per_second = serializers.FloatField(allow_null=True)
    eta_s = serializers.FloatField(source="time_left_s", allow_null=True)
    end = EndOut(source="ending", allow_null=True)
    silent_since = serializers.DateTimeField(
        allow_null=True, help_text="Since when nothing is heard of one of its nodes; null: all are heard of."
    )


class SilenceOut(serializers.Serializer[JobSilence]):
    """What follows where nothing is heard of the job."""

    nodes = serializers.ListField(child=serializers.CharField(), help_text="Those that are silent, by name.")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="When the portal gives the attempt up, as far as is known.")
    then = Word(PUBLIC_STATES, help_text="The state that follows; `queued`: it starts again.")
    resumes_from_step = serializers.IntegerField(
        allow_null=True, help_text="Where it then goes on; 0: from the beginning. Null: it does not."
    )


class FiguresOut(serializers.Serializer[Any]):
    """Figures as docs/figures.md defines them; times are of all attempts together."""

    waiting_s = serializers.FloatField()
    startup_s = serializers.FloatField()
    duration_s = serializers.FloatField()
    peak_memory_bytes = serializers.FloatField(allow_null=True)


class CostOut(serializers.Serializer[Spent]):
    amount = serializers.FloatField(help_text="In the currency of node prices.")
    estimated = serializers.BooleanField(help_text="A price of it was set before prices were kept.")


class ComparedOut(serializers.Serializer[PredictedAndActual]):
    """A promised figure beside what became of it.

    `inside` is null until that is final.
    """

    name = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    actual = serializers.FloatField(allow_null=True)
    inside = serializers.BooleanField(allow_null=True)
    priced_later = serializers.BooleanField(
        help_text="A cost that was not promised, as its GPUs had no price: the promised duration at the price"
        " that they have now, or had when the attempt ended. It is not judged."
    )


class ActualOut(serializers.Serializer[Any]):
    """Measured values of the attempt, under the names of its promise."""

    duration_s = serializers.FloatField(allow_null=True)
    tokens_per_second = serializers.FloatField(allow_null=True)
    peak_memory_bytes = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(allow_null=True)
