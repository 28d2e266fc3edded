"""Outputs of attempts: metrics, logs, checkpoints and artifacts."""

from __future__ import annotations

from typing import Any

from django.db import models

from scheduler.models.jobs import Attempt, Claim, Job
from scheduler.models.nodes import Node
from trainer.step_metrics import StepMetric


class Metric(models.Model):
    """One line of progress: the step metrics of a step.

    They are in columns of their own or in `others` (ADR 0036).
    """

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="metrics")
    step = models.IntegerField()
    loss = models.FloatField(null=True)
    eval_loss = models.FloatField(null=True)
    tokens_per_second = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    learning_rate = models.FloatField(null=True)
    others = models.JSONField(default=dict, db_default={})  # name -> value
    at = models.DateTimeField()

    class Meta:
        ordering = ["step"]
        constraints = [models.UniqueConstraint(fields=["attempt", "step"], name="one_metric_per_step")]

    def __str__(self) -> str:
        return f"{self.attempt_id} step {self.step}"

    def value(self, metric: StepMetric) -> float | None:
        """The value of a metric; None if the node did not report it."""
        value: float | None = getattr(self, metric.column) if metric.column else self.others.get(metric.name)
        return value

    def keep(self, metric: StepMetric, value: float | None) -> None:
        """Set the value of one metric; unsaved."""
        if metric.column:
            setattr(self, metric.column, value)
        elif value is None:
            self.others.pop(metric.name, None)
        else:
            self.others[metric.name] = value


class LogPiece(models.Model):
    """A piece of a claim's log, in the order in which the node numbered it.

    line_ends: how many lines end in it, so that lines are numbered without reading all before them.
    """

    claim = models.ForeignKey(Claim, models.CASCADE, related_name="log")
    seq = models.IntegerField()
    line_ends = models.IntegerField(db_default=0)
    text = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["claim", "seq"], name="one_log_piece_per_seq")]

    def save(self, *args: Any, **options: Any) -> None:
        self.line_ends = len((self.text + ".").splitlines()) - 1
        super().save(*args, **options)

    def __str__(self) -> str:
        return f"{self.claim_id} {self.seq}"


class Checkpoint(models.Model):
    """A complete checkpoint.

    `node` is null when the portal holds it; otherwise it lies on that node only. fault: why no attempt
    can go on from it; empty while one may.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="checkpoints")
    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="+")
    claim = models.ForeignKey(Claim, models.CASCADE, related_name="+")
    step = models.IntegerField()
    files = models.JSONField()  # [{path, sha256, bytes}]
    node = models.ForeignKey(Node, models.SET_NULL, null=True, blank=True, related_name="+")
    fault = models.CharField(max_length=500, blank=True, default="", db_default="")
    at = models.DateTimeField()

    class Meta:
        ordering = ["step"]
        constraints = [models.UniqueConstraint(fields=["attempt", "step"], name="one_checkpoint_per_step")]

    def __str__(self) -> str:
        return f"{self.job_id} at step {self.step}"


class Artifact(models.Model):
    """A file that a claim uploaded; it lies under DATA_DIR/artifacts/JOB/CLAIM/PATH.

    checkpoint_step: of the checkpoint that it is a part of; null for outputs and logs.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="artifacts")
    claim = models.ForeignKey(Claim, models.CASCADE, related_name="artifacts")
    path = models.CharField(max_length=300)
    sha256 = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    checkpoint_step = models.IntegerField(null=True, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["path"]
        indexes = [
            models.Index(
                fields=["job"],
                condition=models.Q(checkpoint_step__isnull=False),
                name="artifact_of_checkpoint",
            )
        ]
        constraints = [models.UniqueConstraint(fields=["claim", "path"], name="one_artifact_per_path")]

    def __str__(self) -> str:
        return self.path
