"""Jobs that come after other jobs, or after whole arrays."""

from __future__ import annotations

from django.db import models

from scheduler.models.arrays import JobArray
from scheduler.models.jobs import Job
from scheduler.states import DependencyKind


class JobDependency(models.Model):
    """A job that may not start before a job, or all of an array, have ended.

    There are no circles: a job depends on jobs that existed before it, and an array gets no jobs later.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="dependencies")
    on = models.ForeignKey(Job, models.CASCADE, related_name="dependents", null=True)
    on_array = models.ForeignKey(JobArray, models.CASCADE, related_name="dependents", null=True)
    kind = models.CharField(max_length=10, choices=[(kind.value, kind.value) for kind in DependencyKind])

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "on"], name="one_dependency_per_pair"),
            models.UniqueConstraint(fields=["job", "on_array"], name="one_dependency_per_job_and_array"),
            models.CheckConstraint(
                condition=models.Q(on__isnull=False) ^ models.Q(on_array__isnull=False),
                name="a_dependency_is_on_a_job_or_an_array",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} after {self.earlier.pk}"

    @property
    def earlier(self) -> Job | JobArray:
        """The job or array that this job comes after."""
        found = self.on or self.on_array
        if found is None:
            raise AssertionError(f"dependency {self.pk} is on nothing")  # a constraint forbids it
        return found
