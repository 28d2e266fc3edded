"""Training data that people uploaded."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from scheduler.models.ids import new_file_id, new_part_id, new_upload_id


class PresentFiles(models.Manager["DatasetFile"]):
    """The files that were not deleted."""

    def get_queryset(self) -> models.QuerySet[DatasetFile]:
        return super().get_queryset().filter(deleted_at__isnull=True)


class DatasetFile(models.Model):
    """An upload that was checked. Its content lies under DATA_DIR/files by digest.

    A deleted file keeps its row, for the history of jobs; all that looks for data asks `present`. expires_at:
    when it is deleted by itself, or once no job needs it any more.
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
    expires_at = models.DateTimeField(null=True, blank=True, db_index=True)
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


class Upload(models.Model):
    """A file that comes in parts until it is complete, cancelled or expired.

    Its bytes count against its owner's quota as long as it is pending. sha256: of the whole, where the sender
    said it before. keep_s: how long the file is kept once it is complete; null: for ever. part_ids: as it was
    completed of them.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        COMPLETED = "completed"
        CANCELLED = "cancelled"
        EXPIRED = "expired"

    id = models.CharField(primary_key=True, max_length=40, default=new_upload_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="uploads")
    team = models.ForeignKey("accounts.Team", models.SET_NULL, null=True, blank=True, related_name="+")
    filename = models.CharField(max_length=255)
    bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, blank=True)
    keep_s = models.IntegerField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    part_ids = models.JSONField(default=list, db_default=[])
    file = models.ForeignKey(DatasetFile, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "expires_at"], name="uploads_under_way")]

    def __str__(self) -> str:
        return f"{self.filename} ({self.state})"


class UploadPart(models.Model):
    """A part of an upload. Its content lies under DATA_DIR/parts/UPLOAD/PART."""

    id = models.CharField(primary_key=True, max_length=40, default=new_part_id, editable=False)
    upload = models.ForeignKey(Upload, models.CASCADE, related_name="parts")
    bytes = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.upload_id}: {self.bytes:,} bytes"
