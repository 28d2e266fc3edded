"""Outputs of attempts: metrics, logs, checkpoints and artifacts."""

from __future__ import annotations

from django.db import models

from scheduler.models.jobs import Attempt, Claim, Job
from scheduler.models.nodes import Node


class Metric(models.Model):
    """One line of progress."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="metrics")
    step = models.IntegerField()
    loss = models.FloatField(null=True)
    eval_loss = models.FloatField(null=True)
    tokens_per_second = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    learning_rate = models.FloatField(null=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["step"]
        constraints = [models.UniqueConstraint(fields=["attempt", "step"], name="one_metric_per_step")]

    def __str__(self) -> str:
        return f"{self.attempt_id} step {self.step}"


class LogPiece(models.Model):
    """A piece of a claim's log, in the order in which the node numbered it."""

    claim = models.ForeignKey(Claim, models.CASCADE, related_name="log")
    seq = models.IntegerField()
    text = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["claim", "seq"], name="one_log_piece_per_seq")]

    def __str__(self) -> str:
        return f"{self.claim_id} {self.seq}"


class Checkpoint(models.Model):
    """A complete checkpoint. `node` is null when the portal holds it; else it lies on that node only."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="checkpoints")
    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="+")
    claim = models.ForeignKey(Claim, models.CASCADE, related_name="+")
    step = models.IntegerField()
    files = models.JSONField()  # [{path, sha256, bytes}]
    node = models.ForeignKey(Node, models.SET_NULL, null=True, blank=True, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ["step"]
        constraints = [models.UniqueConstraint(fields=["attempt", "step"], name="one_checkpoint_per_step")]

    def __str__(self) -> str:
        return f"{self.job_id} at step {self.step}"


class Artifact(models.Model):
    """A file that a claim uploaded; it lies under DATA_DIR/artifacts/JOB/CLAIM/PATH."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="artifacts")
    claim = models.ForeignKey(Claim, models.CASCADE, related_name="artifacts")
    path = models.CharField(max_length=300)
    sha256 = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["claim", "path"], name="one_artifact_per_path")]

    def __str__(self) -> str:
        return self.path
