"""Where the values of jobs were read, and what people did with such values."""

from __future__ import annotations

from typing import Any

from django.db import models

from scheduler.models.jobs import Job


class ReadSource(models.TextChoices):
    """The source from which a value of a job was read."""

    SENTENCE = "sentence"
    SCRIPT = "script"


class JobReading(models.Model):
    """The values read for a job from a sentence or a script; its owner's alone.

    said: the sentence; empty where nothing of it was taken. values: by field, as
    `scheduler.services.provenance.read_values` writes them, with a version.
    """

    job = models.OneToOneField(Job, models.CASCADE, related_name="reading")
    said = models.CharField(max_length=1000, blank=True)
    values = models.JSONField()

    def __str__(self) -> str:
        return f"reading of {self.job_id}"

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        """The values by field: source, origin, because, value and fate."""
        found: dict[str, dict[str, Any]] = self.values["fields"]
        return found


class ReadValueCount(models.Model):
    """How often values read for a field were kept, changed or cleared."""

    source = models.CharField(max_length=10, choices=ReadSource.choices)
    field = models.CharField(max_length=60)
    kept = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    cleared = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["source", "field"]
        constraints = [models.UniqueConstraint(fields=["source", "field"], name="one_count_a_read_field")]

    def __str__(self) -> str:
        return f"{self.source} {self.field}"
