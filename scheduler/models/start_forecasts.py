"""When waiting jobs are expected to start and end."""

from __future__ import annotations

from django.db import models

from scheduler.models.jobs import Job


class StartForecast(models.Model):
    """A forecast of one waiting job, with an 80 % interval.

    Each job has at most two: the first one, which is kept and judged, and the newest. A bound of null is
    beyond what was played ahead.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="start_forecasts")
    first = models.BooleanField()
    made_at = models.DateTimeField()
    policy = models.CharField(max_length=40)
    plays = models.IntegerField()
    start_at = models.DateTimeField()
    start_low = models.DateTimeField()
    start_high = models.DateTimeField(null=True)
    end_at = models.DateTimeField(null=True)
    end_low = models.DateTimeField(null=True)
    end_high = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "first"], name="first_and_newest_start_forecast")
        ]
        indexes = [models.Index(fields=["first", "made_at"], name="start_forecast_made")]

    def __str__(self) -> str:
        return f"start of {self.job_id}"
