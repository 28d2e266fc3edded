"""Read-only views of executions and predictors in Django's admin.

Importing, training and promoting are done by services alone.
"""

from __future__ import annotations

from django.contrib import admin

from knowledge.models import CatalogEntry, Execution, PredictorVersion
from portal.accounts.admin import ReadOnly


@admin.register(Execution)
class ExecutionAdmin(ReadOnly):
    list_display = (
        "model_name",
        "tuning",
        "gpu_model",
        "number_gpus",
        "status",
        "tokens_per_second",
        "source",
    )
    list_filter = ("status", "tuning", "learn")
    search_fields = ("model_name", "gpu_model", "source")


@admin.register(PredictorVersion)
class PredictorVersionAdmin(ReadOnly):
    list_display = ("number", "active", "rows", "reason", "created_at", "promoted_at")


@admin.register(CatalogEntry)
class CatalogEntryAdmin(ReadOnly):
    list_display = ("name", "kind", "created_at")
    list_filter = ("kind",)
    search_fields = ("name",)
