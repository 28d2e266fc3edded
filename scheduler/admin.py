"""Jobs and nodes in Django's admin, read-only.

Services write them, with events and guards. The one exception is the choice of a policy, which
goes through its service too (admin_policy).
"""

from __future__ import annotations

from django.contrib import admin

from portal.accounts.admin import ReadOnly
from portal.events.models import Event
from scheduler import models
from scheduler.admin_policy import PolicyChoiceAdmin


@admin.register(models.Job)
class JobAdmin(ReadOnly):
    list_display = ("id", "name", "owner", "team", "model", "state", "submitted_at", "ended_at")
    list_filter = ("state", "failure_class")
    list_select_related = ("owner", "team")
    search_fields = ("id", "name", "owner__username")


@admin.register(models.Attempt)
class AttemptAdmin(ReadOnly):
    list_display = ("job_id", "fence", "outcome", "created_at", "running_at", "ended_at")
    list_filter = ("outcome",)
    search_fields = ("job__id",)


@admin.register(models.Claim)
class ClaimAdmin(ReadOnly):
    list_display = ("id", "attempt_id", "node", "rank", "phase", "outcome")
    list_filter = ("phase",)
    list_select_related = ("node",)


@admin.register(models.Allocation)
class AllocationAdmin(ReadOnly):
    list_display = ("gpu_id", "claim_id", "allocated_at", "released_at")


@admin.register(Event)
class EventAdmin(ReadOnly):
    list_display = ("position", "type", "subject", "number", "reason", "actor", "at")
    list_filter = ("type",)
    list_select_related = ("actor",)
    search_fields = ("subject",)


@admin.register(models.Checkpoint)
class CheckpointAdmin(ReadOnly):
    list_display = ("job_id", "step", "node", "at")
    list_select_related = ("node",)


@admin.register(models.Artifact)
class ArtifactAdmin(ReadOnly):
    list_display = ("job_id", "path", "bytes", "at")
    search_fields = ("job__id", "path")


@admin.register(models.DatasetFile)
class DatasetFileAdmin(ReadOnly):
    list_display = ("id", "filename", "owner", "rows", "bytes", "format", "created_at")
    list_select_related = ("owner",)
    search_fields = ("id", "filename", "owner__username")


@admin.register(models.Node)
class NodeAdmin(ReadOnly):
    list_display = ("name", "state", "reason", "cores", "price_per_gpu_hour", "last_seen_at", "removed_at")
    list_filter = ("state", ("removed_at", admin.EmptyFieldListFilter))
    search_fields = ("id", "name", "hostname")
    exclude = ("token_hash",)


@admin.register(models.Gpu)
class GpuAdmin(ReadOnly):
    list_display = ("node", "index", "model", "memory_bytes", "util")
    list_filter = ("model",)
    list_select_related = ("node",)


@admin.register(models.NodeSpeedTest)
class NodeSpeedTestAdmin(ReadOnly):
    list_display = ("node", "gpu_model", "at", "measured_at", "problem")
    list_select_related = ("node",)


@admin.register(models.NodePrice)
class NodePriceAdmin(ReadOnly):
    list_display = ("node", "since", "price_per_gpu_hour", "estimated")
    list_select_related = ("node",)


@admin.register(models.JoinToken)
class JoinTokenAdmin(ReadOnly):
    list_display = ("id", "created_by", "created_at", "expires_at", "uses_left")
    exclude = ("token_hash",)


@admin.register(models.Epoch)
class EpochAdmin(ReadOnly):
    list_display = ("number", "busy", "since", "last_tick_at", "ticks")


admin.site.register(models.PolicyChoice, PolicyChoiceAdmin)


@admin.register(models.Simulation)
class SimulationAdmin(ReadOnly):
    list_display = ("id", "state", "knowledge", "cluster", "requested_by", "requested_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("requested_by",)


@admin.register(models.Calibration)
class CalibrationAdmin(ReadOnly):
    list_display = ("id", "node", "state", "requested_by", "requested_at", "until", "ended_at")
    list_filter = ("outcome",)
    list_select_related = ("node", "requested_by")
