"""Starts to come: stops and kept GPUs, forecasts, and questions about them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.functional import cached_property

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
from scheduler.core.stopping import StopReason
from scheduler.models.ids import new_id
from scheduler.models.jobs import Job
from scheduler.models.nodes import Gpu


class PendingStart(models.Model):
    """A job for which GPUs are kept.

    It is gone once the job starts, or cannot start there any more.
    """

    job = models.OneToOneField(Job, models.CASCADE, related_name="pending_start")
    option = models.JSONField()  # as `promised` reads it
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    why_over = models.CharField(max_length=100, blank=True, default="", db_default="")  # ended early

    def __str__(self) -> str:
        return f"pending start of {self.job_id}"

    @cached_property
    def promised(self) -> Option:
        """The configuration with which the job is to start."""
        return read_option(self.option)


class PendingGpu(models.Model):
    """A GPU that is kept for one pending start; no other job is given it."""

    start = models.ForeignKey(PendingStart, models.CASCADE, related_name="gpus")
    gpu = models.OneToOneField(Gpu, models.CASCADE, related_name="pending")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.gpu_id} for {self.start_id}"


class Preemption(models.Model):
    """A running job that was asked to leave its GPUs to another one, or for others.

    gpus, lost_gpu_s: those that it held, and the GPU-seconds after its last checkpoint; 0 until it has left.
    Those for which they lay idle, kept for the other, and the start-up of its next attempt come to them.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="preemptions")
    fence = models.IntegerField()  # of the attempt that was stopped
    policy = models.CharField(max_length=40)  # the one in force
    reason = models.CharField(max_length=20, choices=[(one.value, one.value) for one in StopReason])
    at = models.DateTimeField()
    gpus = models.IntegerField(default=0, db_default=0)
    lost_gpu_s = models.FloatField(default=0.0, db_default=0.0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "fence"], name="one_preemption_per_attempt")]
        indexes = [
            # All that monitors ask for lies in the index itself.
            models.Index(fields=["policy", "reason"], include=["lost_gpu_s"], name="preemption_counted"),
            models.Index(fields=["at"], include=["reason", "lost_gpu_s"], name="preemption_made"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.fence} stopped: {self.reason}"


class StartForecast(models.Model):
    """A forecast of one waiting job, with an 80 % interval.

    Each job has at most two: the first one, which is kept and judged, and the newest. A bound of null is
    beyond what was played ahead. `gpus`: where it would start, the indices of GPUs by the node's id.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="start_forecasts")
    first = models.BooleanField()
    made_at = models.DateTimeField()
    policy = models.CharField(max_length=40)
    plays = models.IntegerField()
    start_at = models.DateTimeField()
    start_low = models.DateTimeField()
    start_high = models.DateTimeField(null=True)
    end_at = models.DateTimeField(null=True)
    end_low = models.DateTimeField(null=True)
    end_high = models.DateTimeField(null=True)
    gpus = models.JSONField(default=dict, db_default={})

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "first"], name="first_and_newest_start_forecast")
        ]
        indexes = [models.Index(fields=["first", "made_at"], name="start_forecast_made")]

    def __str__(self) -> str:
        return f"start of {self.job_id}"


class ChangeSearch(models.Model):
    """Changes that would let a waiting job start sooner, as somebody asked.

    A worker answers; the answer is kept until the next plan.
    """

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="change_search")
    asked_at = models.DateTimeField()
    made_at = models.DateTimeField(null=True)
    version = models.IntegerField(null=True)  # of the job that the changes are for
    found = models.JSONField(default=list)  # as scheduler.core.changes.stored writes it
    trouble = models.CharField(max_length=500, blank=True, default="", db_default="")  # why nothing was found

    class Meta:
        indexes = [models.Index(fields=["asked_at"], name="change_search_asked")]

    def __str__(self) -> str:
        return f"changes of {self.job_id}"


def new_question_id() -> str:
    return new_id("start-")


class StartQuestion(models.Model):
    """The start of a job that is not submitted, as its owner asked for it.

    A worker answers; the row lives for minutes.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_question_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    request = models.JSONField()  # the job, as scheduler.services.jobs.request_json writes it
    asked_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True)  # when a worker began with it
    answered_at = models.DateTimeField(null=True)
    answer = models.JSONField(null=True)  # intervals `start` and `end` (or null), in s since 1970
    trouble = models.CharField(max_length=500, blank=True)  # why there is no forecast

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["answered_at", "asked_at"], name="open_start_question")]

    def __str__(self) -> str:
        return f"{self.id} of {self.owner_id}"
