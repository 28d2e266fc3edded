"""Quotas of teams and limits of people."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce

from scheduler.states import PriorityClass

CLASSES = [(one.value, one.word) for one in PriorityClass]


class TeamQuota(models.Model):
    """GPUs that a team is guaranteed, of one model or (empty) of all together.

    A change ends the row and makes another, so that it stays known what was guaranteed when. `until` null: in
    force. borrow_limit null: any that are idle; lending_limit null: all of them.
    """

    team = models.ForeignKey("accounts.Team", models.CASCADE, related_name="quotas")
    gpu_model = models.CharField(max_length=100, blank=True)
    guaranteed = models.IntegerField()
    borrow_limit = models.IntegerField(null=True, blank=True)
    lending_limit = models.IntegerField(null=True, blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["team", "gpu_model", "since"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "gpu_model"], condition=Q(until__isnull=True), name="one_quota_in_force"
            )
        ]

    def __str__(self) -> str:
        return f"{self.team} {self.gpu_model or 'all'}: {self.guaranteed}"


class PersonLimit(models.Model):
    """The most that the jobs of a person may hold; null: any amount.

    user null: of all people without a row of their own.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="limit"
    )
    running_jobs = models.IntegerField(null=True, blank=True)
    gpus = models.IntegerField(null=True, blank=True)
    gpu_hours_month = models.FloatField(null=True, blank=True)
    max_class = models.IntegerField(default=0, choices=CLASSES)
    max_run_s = models.IntegerField(null=True, blank=True)  # of each job

    class Meta:
        constraints = [models.UniqueConstraint(Coalesce("user", 0), name="one_limit_a_person")]

    def __str__(self) -> str:
        return f"limits of {self.user or 'everybody'}"


class FairShare(models.Model):
    """The weight of a person or a team in fair shares, and its decayed use of GPUs.

    The use is that up to `at`. Allocations that are open are not part of it yet. No row: nothing was used,
    and the weight is 1.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="fair_share"
    )
    team = models.OneToOneField(
        "accounts.Team", models.CASCADE, null=True, blank=True, related_name="fair_share"
    )
    weight = models.FloatField(default=1.0)
    used_gpu_s = models.FloatField(default=0.0)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user__isnull=True, team__isnull=False) | Q(user__isnull=False, team__isnull=True),
                name="share_of_a_person_or_a_team",
            ),
            models.CheckConstraint(condition=Q(weight__gt=0), name="weight_above_zero"),
        ]

    def __str__(self) -> str:
        return f"share of {self.team or self.user}"
