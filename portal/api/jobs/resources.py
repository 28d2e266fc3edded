"""Jobs as programs see them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from knowledge.core.domain.types import Option
from scheduler.models import Attempt, Job, JobEvent, Metric
from scheduler.selectors.job_outcome import actual_of
from scheduler.selectors.public_states import shown_state
from scheduler.states import JobState


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
    source = serializers.CharField(help_text="exact, model, prior or default")  # type: ignore[assignment]
    outside = serializers.BooleanField()
    steps = serializers.IntegerField()


def _promise(option: Option) -> dict[str, Any]:
    told = option.as_json()
    return {name: told[name] for name in map(str, PromiseOut().fields)}


class ChoiceOut(serializers.Serializer[Any]):
    value = serializers.JSONField()
    by = serializers.CharField(help_text="user, recommended or default")
    reason = serializers.CharField()


class ProgressOut(serializers.Serializer[Job]):
    step = serializers.IntegerField()
    total_steps = serializers.IntegerField(allow_null=True)
    loss = serializers.FloatField(allow_null=True)
    tokens_per_second = serializers.FloatField(allow_null=True)
    eta_s = serializers.FloatField(allow_null=True)


class CodeAndText(serializers.Serializer[Any]):
    code = serializers.CharField()
    text = serializers.CharField()


class FailureOut(serializers.Serializer[Any]):
    failure_class = serializers.CharField(help_text="user, resource or system")
    message = serializers.CharField()


class JobBrief(serializers.ModelSerializer[Job]):
    """A row of the list."""

    state = serializers.SerializerMethodField(help_text="As people see it.")
    internal_state = serializers.CharField(source="state")
    training_file = serializers.CharField(source="training_file_id")
    validation_file = serializers.CharField(source="validation_file_id", allow_null=True)
    progress = ProgressOut(source="*")
    wait = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = [
            *("id", "name", "state", "internal_state", "state_since", "model", "training_file"),
            *("validation_file", "goal", "deadline_at", "budget", "retries", "progress", "wait", "error"),
            *("submitted_at", "first_started_at", "ended_at"),
        ]

    def get_state(self, job: Job) -> str:
        return shown_state(job)

    @extend_schema_field(CodeAndText(allow_null=True))
    def get_wait(self, job: Job) -> dict[str, str] | None:
        if job.state != JobState.QUEUED or not job.wait_code:
            return None
        return {"code": job.wait_code, "text": job.wait_text}

    @extend_schema_field(FailureOut(allow_null=True))
    def get_error(self, job: Job) -> dict[str, str] | None:
        if not job.failure_class and not job.failure_reason:
            return None
        return {"failure_class": job.failure_class, "message": job.failure_reason}


class ActualOut(serializers.Serializer[Any]):
    """The promise's outcome under the same names; durations run from start to end of the attempt."""

    duration_s = serializers.FloatField(allow_null=True)
    tokens_per_second = serializers.FloatField(allow_null=True)
    peak_memory_bytes = serializers.FloatField(allow_null=True)
    cost = serializers.FloatField(allow_null=True)


class AttemptOut(serializers.ModelSerializer[Attempt]):
    number = serializers.IntegerField(source="fence")
    nodes = serializers.SerializerMethodField()
    config = serializers.SerializerMethodField()
    promise = serializers.SerializerMethodField()
    actual = serializers.SerializerMethodField()
    measured = serializers.SerializerMethodField()

    class Meta:
        model = Attempt
        fields = [
            *("number", "outcome", "reason", "nodes", "config", "promise", "actual", "measured"),
            *("peak_memory_bytes", "resume_step", "created_at", "running_at", "ended_at"),
        ]

    @extend_schema_field(ActualOut)
    def get_actual(self, attempt: Attempt) -> dict[str, float | None]:
        return actual_of(attempt)

    def get_nodes(self, attempt: Attempt) -> list[dict[str, Any]]:
        return [
            {
                "node": claim.node.name,
                "gpus": sorted(held.gpu.index for held in claim.allocations.all()),
                "phase": claim.phase,
            }
            for claim in attempt.claims.all()
        ]

    @extend_schema_field(serializers.JSONField())
    def get_measured(self, attempt: Attempt) -> dict[str, Any]:
        meeting = {"rendezvous": attempt.rendezvous} if attempt.rendezvous else {}
        return {**attempt.figures.as_json(), **meeting}

    @extend_schema_field(serializers.JSONField())
    def get_config(self, attempt: Attempt) -> dict[str, Any]:
        return asdict(attempt.promised.config)

    @extend_schema_field(PromiseOut)
    def get_promise(self, attempt: Attempt) -> dict[str, Any]:
        return _promise(attempt.promised)


class JobOut(JobBrief):
    """Everything about one job."""

    params = serializers.SerializerMethodField()
    promise = serializers.SerializerMethodField()
    attempts = AttemptOut(many=True)
    evidence = serializers.SerializerMethodField(help_text="Measured executions near it, whoever ran them.")
    notes = serializers.JSONField()
    deleted_files = serializers.SerializerMethodField(help_text="Fields whose files were deleted since.")
    predictor_version = serializers.IntegerField(allow_null=True)

    class Meta(JobBrief.Meta):
        fields = [
            *JobBrief.Meta.fields,
            *("params", "promise", "attempts", "evidence", "notes", "predictor_version"),
            "deleted_files",
        ]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_deleted_files(self, job: Job) -> list[str]:
        files = {"training_file": job.training_file, "validation_file": job.validation_file}
        return [field for field, file in files.items() if file and file.deleted_at]

    @extend_schema_field(serializers.DictField(child=ChoiceOut()))
    def get_params(self, job: Job) -> dict[str, Any]:
        chosen: dict[str, Any] = job.chosen
        return chosen

    @extend_schema_field(serializers.JSONField())
    def get_evidence(self, job: Job) -> list[dict[str, Any]]:
        """Jobs of earlier versions remember the executions' ids, which others may not see."""
        return [{name: value for name, value in near.items() if name != "execution"} for near in job.evidence]

    @extend_schema_field(PromiseOut(allow_null=True))
    def get_promise(self, job: Job) -> dict[str, Any] | None:
        return _promise(job.promised) if job.promised else None


class EventOut(serializers.ModelSerializer[JobEvent]):
    class Meta:
        model = JobEvent
        fields = ["number", "kind", "old", "new", "stop_for", "reason", "data", "at"]


class MetricOut(serializers.ModelSerializer[Metric]):
    attempt = serializers.IntegerField(source="attempt.fence")

    class Meta:
        model = Metric
        fields = [
            *("attempt", "step", "loss", "eval_loss", "tokens_per_second", "memory_bytes"),
            *("learning_rate", "at"),
        ]
