"""Files that nodes upload: results, logs and checkpoints."""

from __future__ import annotations

import secrets
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import transaction

from scheduler.errors import BadReport, StaleAttempt
from scheduler.models import Artifact, Attempt, Claim
from scheduler.services.moves import locked
from scheduler.services.storage import write_new
from trainer.wire import safe_path


def artifact_path(job_id: str, claim_id: str, path: str) -> Path:
    """Where an artifact lies."""
    return Path(settings.DATA_DIR) / "artifacts" / job_id / claim_id / path


def store_artifact(*, claim: Claim, path: str, sha256: str, stream: BinaryIO, now: datetime) -> Artifact:
    """Store an upload of a live claim whole or not at all; the same file again changes nothing.

    Raises BadReport (path or digest), FileTooLarge and StaleAttempt.
    """
    if not safe_path(path) or len(path) > 300:
        raise BadReport("the path must be relative, without .. and at most 300 characters")
    job_id = claim.attempt.job_id
    target = artifact_path(job_id, str(claim.pk), path)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        digest, size = write_new(stream, partial, limit=settings.MAX_ARTIFACT_BYTES)
        if digest != sha256:
            raise BadReport("the content does not match X-Content-SHA256; send it again")
        with transaction.atomic():
            locked(job_id)
            if Attempt.objects.filter(pk=claim.attempt_id, ended_at__isnull=False).exists():
                raise StaleAttempt("This attempt has ended; its files are not wanted any more.")
            partial.replace(target)
            return Artifact.objects.update_or_create(
                claim=claim,
                path=path,
                defaults={"job_id": job_id, "sha256": sha256, "bytes": size, "at": now},
            )[0]
    finally:
        partial.unlink(missing_ok=True)
