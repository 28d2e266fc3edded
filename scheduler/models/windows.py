"""Times in which nodes are closed."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class MaintenanceWindow(models.Model):
    """A time in which nodes run nothing, or (team) the jobs of one team alone."""

    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField(db_index=True)
    nodes = models.ManyToManyField("scheduler.Node", related_name="windows")
    team = models.ForeignKey("accounts.Team", models.CASCADE, null=True, blank=True, related_name="windows")
    note = models.CharField(max_length=300, blank=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["begins_at", "pk"]

    def __str__(self) -> str:
        return f"{self.begins_at:%Y-%m-%d %H:%M} to {self.ends_at:%Y-%m-%d %H:%M}"
