"""Recommendations that are kept, so that a person submits what they have seen."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models

LONGEST_ID = 40


def new_plan_id() -> str:
    prefix = "plan-"
    return prefix + secrets.token_hex(LONGEST_ID)[: LONGEST_ID - len(prefix)]


class JobPlan(models.Model):
    """A request for a job and what was recommended and promised for it.

    Its owner may submit it for a day.
    """

    id = models.CharField(primary_key=True, max_length=LONGEST_ID, default=new_plan_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    made_at = models.DateTimeField()
    request = models.JSONField()  # as scheduler.services.jobs.request_json writes it
    read = models.JSONField(default=list)  # where its values were read, as `ReadValues.as_json`
    recommended = models.JSONField()  # the columns of the job to come
    options_for = models.CharField(max_length=64)  # inventory and predictor that it was made for

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-made_at"], name="plan_of_owner"),
            models.Index(fields=["made_at"], name="plan_made"),
        ]

    def __str__(self) -> str:
        return self.id
