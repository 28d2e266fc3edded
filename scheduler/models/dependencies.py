"""Jobs that come after others."""

from __future__ import annotations

from django.db import models

from scheduler.models.jobs import Job
from scheduler.states import DependencyKind


class JobDependency(models.Model):
    """A job that may not start before another one has ended.

    There are no circles: a job depends on jobs that existed before it.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="dependencies")
    on = models.ForeignKey(Job, models.CASCADE, related_name="dependents")
    kind = models.CharField(max_length=10, choices=[(kind.value, kind.value) for kind in DependencyKind])

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["job", "on"], name="one_dependency_per_pair")]

    def __str__(self) -> str:
        return f"{self.job_id} after {self.on_id}"
