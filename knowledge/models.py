"""Executions and predictors.

There is one row per measured run, and one row per trained predictor.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config
from knowledge.reading_models import LogFormat, ModelState, ScriptReading, SourceTree

__all__ = (
    "CatalogEntry",
    "Execution",
    "LogFormat",
    "ModelState",
    "PredictorVersion",
    "Promotion",
    "ScriptReading",
    "SourceTree",
    "Status",
    "TrackRecord",
)
USER = settings.AUTH_USER_MODEL


class Status(models.TextChoices):
    """How an execution ended, as far as learning is concerned."""

    OK = "ok"
    OOM = "oom", "out of memory"
    FAILED = "failed"
    REFUSED = "refused", "refused by a launch rule"


class Execution(models.Model):
    """One configuration and its measured outcome (docs/knowledge.md).

    Null is unknown, never a default.
    """

    created_at = models.DateTimeField()
    attempt_id = models.UUIDField(null=True, blank=True, unique=True)
    source = models.CharField(max_length=60, default="own")
    origin = models.CharField(max_length=100, blank=True)
    row_digest = models.CharField(max_length=64, null=True, blank=True, unique=True)
    config_hash = models.CharField(max_length=64, db_index=True)

    model_name = models.CharField(max_length=300)
    tuning = models.CharField(max_length=20)
    gpu_model = models.CharField(max_length=100)
    number_gpus = models.PositiveIntegerField()
    number_nodes = models.PositiveIntegerField(default=1)
    tokens_per_sample = models.PositiveIntegerField()
    per_device_batch_size = models.PositiveIntegerField(help_text="0: not a whole number, refused")
    gradient_accumulation_steps = models.PositiveIntegerField(default=1)
    effective_batch_size = models.PositiveIntegerField()
    precision = models.CharField(max_length=20, null=True, blank=True)
    quantization = models.CharField(max_length=20, null=True, blank=True)
    lora_r = models.PositiveIntegerField(null=True, blank=True)
    lora_alpha = models.PositiveIntegerField(null=True, blank=True)
    optimizer_state = models.CharField(max_length=20, null=True, blank=True)
    flash_attention = models.BooleanField(null=True, blank=True)
    gradient_checkpointing = models.BooleanField(null=True, blank=True)
    reentrant_checkpointing = models.BooleanField(null=True, blank=True)
    fast_kernels = models.BooleanField(null=True, blank=True)
    padding_free = models.BooleanField(null=True, blank=True)
    chunked_loss = models.BooleanField(null=True, blank=True)
    expert_parallel = models.PositiveIntegerField(null=True, blank=True)
    model_parallel = models.PositiveIntegerField(null=True, blank=True)
    sharding = models.CharField(max_length=20, null=True, blank=True)
    network = models.CharField(max_length=20, null=True, blank=True)
    software = models.CharField(max_length=200, null=True, blank=True)
    run_protocol = models.CharField(max_length=60, null=True, blank=True)
    settings = models.JSONField(default=dict, db_default={}, help_text="fields of Config without a column")
    link_level = models.CharField(
        max_length=10, null=True, blank=True, help_text="how close its GPUs lay in their nodes"
    )
    padded_tokens = models.FloatField(null=True, blank=True, help_text="mean tokens of a row as processed")

    status = models.CharField(max_length=20, choices=Status.choices)
    tokens_per_second = models.FloatField(null=True, blank=True, help_text="whole job")
    runtime_s = models.FloatField(null=True, blank=True, help_text="only where it is a true duration")
    startup_s = models.FloatField(null=True, blank=True)
    peak_memory_fraction = models.FloatField(null=True, blank=True, help_text="0 to 1, highest GPU")
    peak_memory_bytes = models.BigIntegerField(null=True, blank=True, help_text="of one GPU")

    learn = models.BooleanField(default=True)
    learn_validity = models.BooleanField(default=True, help_text="failures of this source are published too")
    flag_reason = models.CharField(max_length=300, blank=True)
    predicted = models.JSONField(null=True, blank=True, help_text="the promise it was run under")
    promised_elsewhere = models.JSONField(
        null=True, blank=True, help_text="the promise at submission, of a run that was placed elsewhere"
    )
    predictor_version = models.PositiveIntegerField(null=True, blank=True)
    kept_by = models.ForeignKey(
        USER,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="who kept it from a log",
    )

    class Meta:
        indexes = [
            models.Index(fields=["source", "model_name", "tuning", "gpu_model"], name="execution_kind"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(tokens_per_second__isnull=True) | Q(tokens_per_second__gt=0),
                name="execution_rate_is_positive",
            ),
            models.CheckConstraint(
                condition=Q(status="ok") | Q(runtime_s__isnull=True), name="execution_runtime_needs_success"
            ),
        ]

    def __str__(self) -> str:
        return f"execution {self.pk}: {self.model_name} {self.tuning} on {self.number_gpus} {self.gpu_model}"

    @property
    def config(self) -> Config:
        """The configuration as the core knows it."""
        with_column = {name: getattr(self, name) for name in CONFIG_COLUMNS}
        return Config(**self.settings, **with_column)

    @property
    def _gpu_memory_bytes(self) -> float | None:
        """Memory of the GPU that the peak is a share of, where both were measured."""
        share, peak = self.peak_memory_fraction, self.peak_memory_bytes
        return peak / share if share and peak else None

    @property
    def row(self) -> Measurement:
        """The execution as the core learns from it."""
        return Measurement(
            config=self.config,
            status=self.status,
            source=self.source,
            origin=self.origin,
            effective_batch_size=self.effective_batch_size,
            tokens_per_second=self.tokens_per_second,
            runtime_s=self.runtime_s,
            startup_s=self.startup_s,
            peak_memory_fraction=self.peak_memory_fraction,
            gpu_memory_bytes=self._gpu_memory_bytes,
            padded_tokens=self.padded_tokens,
            learn=self.learn,
            learn_validity=self.learn_validity,
            flag_reason=self.flag_reason,
        )


_COLUMNS = {field.name for field in Execution._meta.fields}
CONFIG_COLUMNS = tuple(field.name for field in fields(Config) if field.name in _COLUMNS)
CONFIG_SETTINGS = tuple(field.name for field in fields(Config) if field.name not in _COLUMNS)


def config_values(config: Config) -> dict[str, Any]:
    """Return the columns that keep a configuration.

    A field without one of its own goes to `settings`, if known.
    """
    values = {name: getattr(config, name) for name in CONFIG_COLUMNS}
    others = {name: getattr(config, name) for name in CONFIG_SETTINGS}
    return {**values, "settings": {name: value for name, value in others.items() if value is not None}}


class PredictorVersion(models.Model):
    """One trained predictor.

    `path` is relative to DATA_DIR/predictors; the digest is checked on load.
    """

    number = models.PositiveIntegerField(unique=True)
    path = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    metrics = models.JSONField(default=dict)
    rows = models.PositiveIntegerField()
    last_execution = models.PositiveBigIntegerField(default=0, help_text="newest row it was trained on")
    created_at = models.DateTimeField()
    promoted_at = models.DateTimeField(null=True, blank=True)
    active = models.BooleanField(default=False)
    reason = models.CharField(max_length=300, blank=True, help_text="why it was or was not promoted")

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["active"], condition=Q(active=True), name="one_active_predictor")
        ]

    def __str__(self) -> str:
        return f"predictor {self.number}"


class Promotion(models.Model):
    """One promotion of a version to the predictor that answers.

    The last promotion that is not undone names the active version; rolling back undoes that one.
    Rows are kept: they are the history of which version answered when.
    """

    version = models.ForeignKey(PredictorVersion, models.CASCADE, related_name="promotions")
    at = models.DateTimeField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, help_text="null: training did"
    )
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.version} at {self.at:%Y-%m-%d %H:%M:%S}"


class CatalogEntry(models.Model):
    """A model or GPU beyond the shipped catalogue.

    `facts` are those of a `Model` or a `GpuModel`.
    """

    class Kind(models.TextChoices):
        MODEL = "model"
        GPU = "gpu", "GPU"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=300)
    facts = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["kind", "name"]
        verbose_name_plural = "catalog entries"
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="one_catalog_entry_a_name")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class TrackRecord(models.Model):
    """How the promises of the runs before a day held.

    median_error: as docs/figures.md defines it.
    """

    day = models.DateField(unique=True)
    runs = models.PositiveIntegerField()
    coverage = models.FloatField(null=True, blank=True, help_text="share inside their 80 % intervals")
    median_error = models.FloatField(null=True, blank=True)
    alarm = models.CharField(max_length=300, blank=True, help_text="what has drifted, empty if nothing")

    class Meta:
        ordering = ["-day"]

    def __str__(self) -> str:
        return f"track record of {self.day}"
