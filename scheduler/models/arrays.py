"""Jobs that were submitted together, alike but for some parameters."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse

from scheduler.models.ids import new_array_id


class JobArray(models.Model):
    """The jobs of one request over a list of values.

    limit: how many of them may run at a time; null: any number. ended_at: when the last one was found to have
    ended.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_array_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="job_arrays")
    limit = models.IntegerField(null=True, blank=True)
    submitted_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    PREFIX = "ftarray-"

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.pk

    def get_absolute_url(self) -> str:
        return f"{reverse('jobs')}?q={self.pk}"
