"""A job with everything on it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.common.fields import Word
from portal.api.jobs.figures import ComparedOut, CostOut, FiguresOut, SilenceOut
from portal.api.jobs.read_values import JobReadingOut
from portal.api.jobs.resources.attempts import AttemptOut
from portal.api.jobs.resources.brief import JobBrief
from portal.api.jobs.resources.promises import (
    ChoiceOut,
    PromiseOut,
    promise_fields,
)
from scheduler.models import Job, JobDependency
from scheduler.selectors.analysis.failures import kept_causes
from scheduler.selectors.analysis.readings import own_reading
from scheduler.selectors.cluster.job_silence import job_silence
from scheduler.selectors.dependencies import dependencies_of
from scheduler.selectors.figures.cost import costs_of_job, totals
from scheduler.selectors.figures.job import elapsed, first_loss
from scheduler.selectors.figures.promise import comparison, comparison_with_submission
from scheduler.selectors.jobs import jobs_by_state, sees
from scheduler.selectors.public_states import PUBLIC_STATES
from scheduler.states import JobState, public_state


class AfterOut(serializers.ModelSerializer[JobDependency]):
    job = serializers.CharField(source="on_id", allow_null=True)
    array = serializers.CharField(source="on_array_id", allow_null=True)
    state = serializers.SerializerMethodField(
        help_text="Of the job; null for an array, or if you may not see that job any more."
    )
    jobs = serializers.SerializerMethodField(
        help_text="Of the array: how many of the jobs that you see are in each state; null for a job."
    )

    class Meta:
        model = JobDependency
        fields = ["job", "array", "kind", "state", "jobs"]

    @extend_schema_field(Word(PUBLIC_STATES, allow_null=True))
    def get_state(self, dependency: JobDependency) -> str | None:
        on = dependency.on
        if on is None or not sees(self.context["user"], on):
            return None
        return public_state(JobState(on.state), on.stop_for)

    def get_jobs(self, dependency: JobDependency) -> dict[str, int] | None:
        array = dependency.on_array_id
        return self.context["arrays"].get(array, {}) if array else None


class JobOut(JobBrief):
    """Everything about one job, but what is told on request alone.

    include, in the context: which of that is told; all of it unless given.
    """

    # What who waits for a job need not read each time.
    on_request: ClassVar[tuple[str, ...]] = ("attempts", "evidence")

    figures = serializers.SerializerMethodField()
    silence = serializers.SerializerMethodField(
        help_text="What follows where nothing is heard of one of its nodes; null while all are heard of."
    )
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
            *("params", "promise", "attempts", "evidence", "notes", "predictor_version"),
            *(
                "after",
                "deleted_files",
                "read",
                "figures",
                "silence",
                "first_loss",
                "cost",
                "comparison",
                "submission_comparison",
            ),
        ]

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        left_out = {*self.on_request} - {*self.context.get("include", self.on_request)}
        return {name: field for name, field in fields.items() if name not in left_out}

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

    @extend_schema_field(SilenceOut(allow_null=True))
    def get_silence(self, job: Job) -> Any:
        silence = job_silence(job, self.context["now"])
        return SilenceOut(silence).data if silence else None

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
        after = dependencies_of(job)
        arrays = jobs_by_state(self.context["user"], [one.on_array_id for one in after if one.on_array_id])
        return AfterOut(after, many=True, context={**self.context, "arrays": arrays}).data

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
        return promise_fields(job.promised) if job.promised else None
