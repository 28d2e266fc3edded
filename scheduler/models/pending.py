"""Starts that wait until the jobs that were stopped for them have left their GPUs."""

from __future__ import annotations

from django.db import models
from django.utils.functional import cached_property

from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Option
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
