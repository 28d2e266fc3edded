"""Training data that people uploaded."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from scheduler.models.ids import new_file_id


class PresentFiles(models.Manager["DatasetFile"]):
    """The files that were not deleted."""

    def get_queryset(self) -> models.QuerySet[DatasetFile]:
        return super().get_queryset().filter(deleted_at__isnull=True)


class DatasetFile(models.Model):
    """An upload that was checked. Its content lies under DATA_DIR/files by digest.

    A deleted file keeps its row, for the history of jobs; all that looks for data asks `present`.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_file_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="files")
    team = models.ForeignKey("accounts.Team", models.SET_NULL, null=True, blank=True, related_name="files")
    filename = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64, db_index=True)
    bytes = models.BigIntegerField()
    rows = models.BigIntegerField()
    format = models.CharField(max_length=20)
    lengths = models.JSONField()  # [[bytes, rows], ...]: histogram of row lengths
    unused_fields = models.JSONField(default=list, db_default=[], help_text="Fields that are not trained on.")
    created_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager["DatasetFile"]()
    present = PresentFiles()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.filename


class UploadHold(models.Model):
    """An upload under way.

    Its bytes count against its sender's quota before they arrive.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    bytes = models.BigIntegerField()
    begun_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.bytes:,} bytes since {self.begun_at:%Y-%m-%d %H:%M:%S}"
