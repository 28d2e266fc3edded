"""The values that were read for a job, as programs see them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.common.fields import Word
from scheduler.models import JobReading, ReadSource
from scheduler.services.provenance.read_values import ORIGINS, ReadValueChoice


class ReadFieldOut(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="As it was read; files by id.")
    origin = Word(ORIGINS)
    because = serializers.CharField(help_text="The words or the line that say so.")
    fate = Word(ReadValueChoice, help_text="Before the submission.")

    def get_fields(self) -> dict[str, Any]:
        return {"source": Word(ReadSource), **super().get_fields()}


class JobReadingOut(serializers.ModelSerializer[JobReading]):
    class Meta:
        model = JobReading
        fields = ["said"]

    def get_fields(self) -> dict[str, Any]:
        by_name = serializers.DictField(child=ReadFieldOut())
        return {**super().get_fields(), "fields": by_name}
