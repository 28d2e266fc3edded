"""Readings of logs: why attempts failed, and questions with their answers."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from scheduler.models.jobs import Attempt, Job


class Failure(models.Model):
    """Why an attempt ended badly, read from its log once it had ended.

    cause, failure_class: as `knowledge.reading.failures.causes` names them; the class is empty where no cause
    was found. lines: [{number, text}], those that tell it, or the most unusual ones. Budgets do not go by it.
    """

    attempt = models.OneToOneField(Attempt, models.CASCADE, related_name="failure")
    cause = models.CharField(max_length=40)
    failure_class = models.CharField(max_length=10, blank=True)
    sentence = models.CharField(max_length=300)
    lines = models.JSONField(default=list)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.cause} of {self.attempt_id}"


class LogQuestion(models.Model):
    """A question about a job's log with its newest answer; kept for 90 days.

    topic: empty where no rule understood it. lines: [{number, text}]. log_end: the newest piece of the log
    that was read; the same question about the same log of a job that has ended has the same answer.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="questions")
    asker = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    question = models.CharField(max_length=300)
    topic = models.CharField(max_length=20, blank=True)
    answer = models.TextField()
    lines = models.JSONField(default=list)
    log_end = models.BigIntegerField(db_default=0)
    at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(fields=["job", "asker", "question"], name="one_row_a_log_question")
        ]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.question[:40]}"
