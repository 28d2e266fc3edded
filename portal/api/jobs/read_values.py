"""The values that were read for a job, as programs see them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from scheduler.models import JobReading


class ReadFieldOut(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="As it was read; files by id.")
    origin = serializers.CharField(help_text="stated, inferred or derived")
    because = serializers.CharField(help_text="The words or the line that say so.")
    fate = serializers.CharField(help_text="kept or changed before submission")

    def get_fields(self) -> dict[str, Any]:
        return {"source": serializers.CharField(help_text="sentence or script"), **super().get_fields()}


class JobReadingOut(serializers.ModelSerializer[JobReading]):
    class Meta:
        model = JobReading
        fields = ["said"]

    def get_fields(self) -> dict[str, Any]:
        by_name = serializers.DictField(child=ReadFieldOut())
        return {**super().get_fields(), "fields": by_name}
