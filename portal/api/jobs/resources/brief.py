"""A job as lists show it."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.common.fields import CurrencyField, Word
from portal.api.common.refs import UserRef
from portal.api.jobs.figures import ProgressOut, WarningOut
from portal.api.jobs.resources.promises import (
    FailureOut,
    WaitOut,
)
from portal.api.jobs.start import ExpectedOut
from portal.api.jobs.terms import ANSWERED, answer_fields
from scheduler.core.job_terms import ON_THE_ROW
from scheduler.models import Job
from scheduler.selectors.figures.job import job_figures
from scheduler.selectors.figures.start_forecasts import newest_forecast
from scheduler.selectors.figures.times import JobStage
from scheduler.selectors.public_states import PUBLIC_STATES
from scheduler.states import JobState


class JobBrief(serializers.ModelSerializer[Job]):
    """A row of the list. `context["now"]`: the moment of the reading."""

    owner = UserRef(read_only=True)
    submitted_by_token = serializers.SerializerMethodField(
        help_text="Name of the API token that submitted it; null for one that came from a page."
    )
    created_at = serializers.DateTimeField(source="submitted_at", read_only=True)
    state = serializers.SerializerMethodField(help_text="The state as shown to people.")
    state_since = serializers.SerializerMethodField(help_text="Since when people see it in this state.")
    internal_state = Word(JobState, source="state")
    stage = serializers.SerializerMethodField(help_text="What it does before it trains; empty otherwise.")
    progress = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    data_notes = serializers.SerializerMethodField(
        help_text="How its data were read, once they were: rows cut, parts that a chat template left out."
    )
    output_warnings = serializers.SerializerMethodField(
        help_text="Of a job that succeeded: what is wrong with its output, such as layers that readers lose."
    )
    wait = serializers.SerializerMethodField()
    expected = serializers.SerializerMethodField(help_text="When a waiting job starts; else null.")
    error = serializers.SerializerMethodField()

    currency = CurrencyField()
    version = serializers.IntegerField(help_text="It rises with every change, also of the state.")

    class Meta:
        model = Job
        fields: list[str] = [
            *("id", "version", "state", "internal_state", "stage", "state_since", "array"),
            *("owner", "submitted_by_token"),
            *(name for name, term in ON_THE_ROW.items() if term.kind not in ANSWERED),
            *("currency", "progress", "warnings", "data_notes", "output_warnings"),
            *("wait", "expected", "error"),
            *("created_at", "front_at", "first_started_at", "ended_at"),
        ]

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), **answer_fields()}

    # Made once, not for each row of a list: their fields take milliseconds.
    _progress = cached_property(lambda _: ProgressOut())
    _warning = cached_property(lambda _: WarningOut())
    _expected = cached_property(lambda _: ExpectedOut())

    def to_representation(self, job: Job) -> Any:
        self.shown = job_figures(job, self.context["now"])
        return super().to_representation(job)

    def get_submitted_by_token(self, job: Job) -> str | None:
        return job.submitted_by_token or None

    @extend_schema_field(Word(PUBLIC_STATES))
    def get_state(self, _: Job) -> str:
        return self.shown.state

    @extend_schema_field(Word(JobStage, allow_blank=True))
    def get_stage(self, _: Job) -> str:
        return self.shown.stage

    def get_state_since(self, _: Job) -> datetime:
        return self.shown.since

    @extend_schema_field(ProgressOut)
    def get_progress(self, _: Job) -> Any:
        return self._progress.to_representation(self.shown)

    @extend_schema_field(WarningOut(many=True))
    def get_warnings(self, _: Job) -> Any:
        return [self._warning.to_representation(warning) for warning in self.shown.warnings]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_data_notes(self, _: Job) -> list[str]:
        return list(self.shown.data_notes)

    def get_output_warnings(self, _: Job) -> list[str]:
        return list(self.shown.output_warnings)

    @extend_schema_field(WaitOut(allow_null=True))
    def get_wait(self, job: Job) -> dict[str, str] | None:
        if job.state != JobState.QUEUED or not job.wait_code:
            return None
        return {"code": job.wait_code, "text": job.wait_text}

    @extend_schema_field(ExpectedOut(allow_null=True))
    def get_expected(self, job: Job) -> Any:
        expected = newest_forecast(job, self.context["now"])
        return self._expected.to_representation(expected) if expected else None

    @extend_schema_field(FailureOut(allow_null=True))
    def get_error(self, job: Job) -> dict[str, str] | None:
        if not job.failure_class and not job.failure_reason:
            return None
        return {
            "failure_class": job.failure_class,
            "message": job.failure_reason,
            "code": job.failure_code,
        }
