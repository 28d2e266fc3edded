"""Jobs as programs see them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from knowledge.core.domain.types import Option
from portal.accounts.models import Team
from portal.api.common.fields import CurrencyField
from portal.api.jobs.closeness import LevelField
from portal.api.jobs.figures import ActualOut, ComparedOut, CostOut, FiguresOut, ProgressOut, WarningOut
from portal.api.jobs.read_values import JobReadingOut
from portal.api.jobs.requests import SpotField
from portal.api.jobs.start import ExpectedOut
from scheduler.core.spending import Spent
from scheduler.models import Attempt, Failure, Job, JobDependency, JobEvent, Metric
from scheduler.selectors.analysis.failures import kept_causes
from scheduler.selectors.analysis.readings import own_reading
from scheduler.selectors.dependencies import dependencies_of
from scheduler.selectors.figures.cost import costs_of_job, totals
from scheduler.selectors.figures.job import elapsed, first_loss, job_figures
from scheduler.selectors.figures.promise import actual_of_attempt, comparison, comparison_with_submission
from scheduler.selectors.figures.start_forecasts import newest_forecast
from scheduler.selectors.jobs import sees
from scheduler.states import JobState, public_state
from trainer.step_metrics import STEP_METRICS, StepMetric


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
    content = option.as_json()
    return {name: content[name] for name in map(str, PromiseOut().fields)}


class ChoiceOut(serializers.Serializer[Any]):
    value = serializers.JSONField()
    by = serializers.CharField(help_text="user, recommended or default")
    reason = serializers.CharField()


class CodeAndText(serializers.Serializer[Any]):
    code = serializers.CharField()
    text = serializers.CharField()


class FailureOut(serializers.Serializer[Any]):
    failure_class = serializers.CharField(help_text="user, resource or system")
    message = serializers.CharField()
    code = serializers.CharField(help_text="`time-limit`, where that ended it; else empty.")


class JobBrief(serializers.ModelSerializer[Job]):
    """A row of the list. `context["now"]`: the moment of the reading."""

    state = serializers.SerializerMethodField(help_text="The state as shown to people.")
    state_since = serializers.SerializerMethodField(help_text="Since when people see it in this state.")
    internal_state = serializers.CharField(source="state")
    stage = serializers.SerializerMethodField(help_text="What it does before it trains; empty otherwise.")
    training_file = serializers.CharField(source="training_file_id")
    validation_file = serializers.CharField(source="validation_file_id", allow_null=True)
    team: serializers.SlugRelatedField[Team] = serializers.SlugRelatedField(
        read_only=True, allow_null=True, slug_field="name", help_text="Its name; null: the owner's alone."
    )
    progress = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    wait = serializers.SerializerMethodField()
    expected = serializers.SerializerMethodField(help_text="When a waiting job starts; else null.")
    error = serializers.SerializerMethodField()

    currency = CurrencyField()
    priority = serializers.CharField(source="priority_class", help_text="low, normal, high or urgent")
    preemptible = serializers.BooleanField(help_text="May it be stopped for other jobs?")
    spot = SpotField(help_text="May it use spot nodes?")
    topology = serializers.CharField(help_text="automatic, none, best_effort or guaranteed")
    topology_level = LevelField(allow_null=True)
    version = serializers.IntegerField(help_text="It rises with every change, also of the state.")

    class Meta:
        model = Job
        fields = [
            *(
                "id",
                "version",
                "name",
                "state",
                "internal_state",
                "stage",
                "state_since",
                "array",
                "model",
                "team",
            ),
            *("training_file", "validation_file", "goal", "deadline_at", "budget", "currency", "retries"),
            *("progress", "warnings", "wait", "expected", "error"),
            *("priority", "preemptible", "max_run_s", "spot", "topology", "topology_level"),
            *("submitted_at", "begin_at", "front_at", "first_started_at", "ended_at"),
        ]

    def to_representation(self, job: Job) -> Any:
        self.shown = job_figures(job, self.context["now"])
        return super().to_representation(job)

    def get_state(self, _: Job) -> str:
        return self.shown.state

    def get_stage(self, _: Job) -> str:
        return self.shown.stage

    def get_state_since(self, _: Job) -> datetime:
        return self.shown.since

    @extend_schema_field(ProgressOut)
    def get_progress(self, _: Job) -> Any:
        return ProgressOut(self.shown).data

    @extend_schema_field(WarningOut(many=True))
    def get_warnings(self, _: Job) -> Any:
        return [WarningOut(warning).data for warning in self.shown.warnings]

    @extend_schema_field(CodeAndText(allow_null=True))
    def get_wait(self, job: Job) -> dict[str, str] | None:
        if job.state != JobState.QUEUED or not job.wait_code:
            return None
        return {"code": job.wait_code, "text": job.wait_text}

    @extend_schema_field(ExpectedOut(allow_null=True))
    def get_expected(self, job: Job) -> Any:
        expected = newest_forecast(job, self.context["now"])
        return ExpectedOut(expected).data if expected else None

    @extend_schema_field(FailureOut(allow_null=True))
    def get_error(self, job: Job) -> dict[str, str] | None:
        if not job.failure_class and not job.failure_reason:
            return None
        return {
            "failure_class": job.failure_class,
            "message": job.failure_reason,
            "code": job.failure_code,
        }


class AttemptOut(serializers.ModelSerializer[Attempt]):
    number = serializers.IntegerField(source="fence")
    nodes = serializers.SerializerMethodField()
    config = serializers.SerializerMethodField()
    promise = serializers.SerializerMethodField()
    actual = serializers.SerializerMethodField()
    measured = serializers.SerializerMethodField()
    cause = serializers.SerializerMethodField(
        help_text="Why it ended badly, such as gpu-memory; null until its log was read."
    )

    class Meta:
        model = Attempt
        fields = [
            *("number", "outcome", "reason", "cause", "nodes", "config", "promise", "actual", "measured"),
            *("peak_memory_bytes", "resume_step", "created_at", "running_at", "ended_at"),
        ]

    @extend_schema_field(ActualOut)
    def get_actual(self, attempt: Attempt) -> dict[str, float | None]:
        costs: dict[UUID, Spent] = self.context["costs"]
        return actual_of_attempt(attempt, costs.get(attempt.pk))

    def get_cause(self, attempt: Attempt) -> str | None:
        causes: dict[int, Failure] = self.context["causes"]
        return causes[attempt.fence].cause if attempt.fence in causes else None

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


class AfterOut(serializers.ModelSerializer[JobDependency]):
    job = serializers.CharField(source="on_id")
    state = serializers.SerializerMethodField(help_text="Null if you may not see that job any more.")

    class Meta:
        model = JobDependency
        fields = ["job", "kind", "state"]

    def get_state(self, dependency: JobDependency) -> str | None:
        if not sees(self.context["user"], dependency.on):
            return None
        return public_state(JobState(dependency.on.state), dependency.on.stop_for)


class JobOut(JobBrief):
    """Everything about one job."""

    figures = serializers.SerializerMethodField()
    params = serializers.SerializerMethodField()
    promise = serializers.SerializerMethodField()
    attempts = serializers.SerializerMethodField()
    first_loss = serializers.SerializerMethodField(help_text="Training loss of the first report.")
    cost = serializers.SerializerMethodField(help_text="Spent by now; null where no GPU had a price.")
    comparison = serializers.SerializerMethodField(
        help_text="Figures promised at placement, and actual ones."
    )
    submission_comparison = serializers.SerializerMethodField(
        help_text="Figures promised at submission, and actual ones; empty if placed as promised."
    )
    evidence = serializers.SerializerMethodField(help_text="Similar measured executions of any user.")
    notes = serializers.JSONField()
    after = serializers.SerializerMethodField(help_text="Jobs that it comes after, and what they must do.")
    read = serializers.SerializerMethodField(
        help_text="What was read for it from a sentence or script; null for others than its owner."
    )
    deleted_files = serializers.SerializerMethodField(help_text="Fields whose files have been deleted since.")
    predictor_version = serializers.IntegerField(allow_null=True)

    class Meta(JobBrief.Meta):
        fields = [
            *JobBrief.Meta.fields,
            *("params", "promise", "after", "attempts", "evidence", "notes", "predictor_version"),
            *(
                "after",
                "deleted_files",
                "read",
                "figures",
                "first_loss",
                "cost",
                "comparison",
                "submission_comparison",
            ),
        ]

    def to_representation(self, job: Job) -> Any:
        costs = costs_of_job(job, self.context["now"])
        self.of_attempts = totals(costs, lambda one: one.attempt)
        self.spent = totals(costs, lambda one: one.job).get(job.pk)
        return super().to_representation(job)

    @extend_schema_field(AttemptOut(many=True))
    def get_attempts(self, job: Job) -> Any:
        context = {"costs": self.of_attempts, "causes": kept_causes(job)}
        return AttemptOut(job.attempts.all(), many=True, context=context).data

    @extend_schema_field(FiguresOut)
    def get_figures(self, job: Job) -> Any:
        times = asdict(elapsed(job, self.context["now"]))
        return FiguresOut({**times, "peak_memory_bytes": self.shown.peak_memory_bytes}).data

    def get_first_loss(self, job: Job) -> float | None:
        return first_loss(job)

    @extend_schema_field(CostOut(allow_null=True))
    def get_cost(self, _: Job) -> Any:
        return CostOut(self.spent).data if self.spent else None

    @extend_schema_field(ComparedOut(many=True))
    def get_comparison(self, job: Job) -> Any:
        lines = comparison(job, self.spent, self.context["now"])
        return [ComparedOut(line).data for line in lines]

    @extend_schema_field(ComparedOut(many=True))
    def get_submission_comparison(self, job: Job) -> Any:
        lines = comparison_with_submission(job, self.spent, self.context["now"])
        return [ComparedOut(line).data for line in lines]

    @extend_schema_field(AfterOut(many=True))
    def get_after(self, job: Job) -> Any:
        return AfterOut(dependencies_of(job), many=True, context=self.context).data

    @extend_schema_field(JobReadingOut(allow_null=True))
    def get_read(self, job: Job) -> Any:
        reading = own_reading(self.context["user"], job)
        return JobReadingOut(reading).data if reading else None

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
    """A line of progress, with the step metrics of the trainer's table."""

    attempt = serializers.IntegerField(source="attempt.fence")

    class Meta:
        model = Metric
        fields = ["attempt", "step", "at"]

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), **{m.public_name: _metric_field(m) for m in STEP_METRICS}}


def _metric_field(metric: StepMetric) -> serializers.Field[Any, Any, Any, Any]:
    """Null where the node did not report it."""
    kind = serializers.IntegerField if metric.whole else serializers.FloatField
    source = None if metric.column else f"others.{metric.name}"
    unit = metric.unit and f" in {metric.unit}"
    help_text = f"{metric.label.capitalize()}{unit}: {metric.help}."
    return kind(read_only=True, allow_null=True, help_text=help_text, source=source)
