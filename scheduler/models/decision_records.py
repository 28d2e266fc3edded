"""Decisions as they are kept: enough to make them again (docs/adr/0049)."""

from __future__ import annotations

from django.db import models

from scheduler.core.decisions.news import Verb
from scheduler.models.jobs import Job


class Decision(models.Model):
    """A policy's decision that started, stopped, moved or newly blocked a job.

    `input` and `plan` are as scheduler.core.decisions.decision_json packs them.
    """

    at = models.DateTimeField()
    policy = models.CharField(max_length=40)
    parameters = models.JSONField(default=dict)  # that differ from the policy's defaults
    predictor_version = models.IntegerField(null=True)  # that was active
    release = models.CharField(max_length=40)  # of the portal
    digest = models.CharField(max_length=32)  # of its news: the same for a decision that is made again
    size = models.IntegerField()  # bytes of input and plan
    input = models.BinaryField()
    plan = models.BinaryField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["at", "size"], name="decision_size")]

    def __str__(self) -> str:
        return f"decision {self.pk} by {self.policy}"


class DecisionJob(models.Model):
    """One job about which a decision said something new."""

    decision = models.ForeignKey(Decision, models.CASCADE, related_name="jobs")
    job = models.ForeignKey(Job, models.CASCADE, related_name="decisions")
    verb = models.CharField(max_length=10, choices=[(verb.value, verb.value) for verb in Verb])
    code = models.CharField(max_length=40, blank=True)  # a WaitState if it waits, a StopReason if it stops

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["decision", "job"], name="one_verb_per_job")]

    def __str__(self) -> str:
        return f"{self.verb} {self.job_id}"


class OptionSet(models.Model):
    """Options of jobs, stored once under the digest that decisions name."""

    digest = models.CharField(primary_key=True, max_length=32)
    used_on = models.DateField(db_index=True)  # the last day on which a decision named it
    size = models.IntegerField()
    options = models.BinaryField()

    def __str__(self) -> str:
        return self.digest
