"""Files that nodes upload: results, logs and checkpoints."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import transaction

from scheduler.errors import BadReport, StaleAttempt
from scheduler.models import Artifact, Attempt, Claim
from scheduler.services.files.storage import arriving, artifact_path, make_folder, write_new
from scheduler.services.jobs.transitions import locked
from trainer.protocol_parsing import safe_path

LONGEST_NAME = 255  # of a file or folder, on most file systems
OF_CHECKPOINT = re.compile(r"checkpoints/step-([0-9]{1,9})/")


def _make_way(target: Path) -> None:
    """Raise BadReport if a file or a folder is in the way of the upload.

    That is a file where a folder has to be, or a folder where the file has to be.
    """
    try:
        make_folder(target.parent)
    except (FileExistsError, NotADirectoryError) as file:
        raise BadReport("a file was uploaded under the name of this path's folder") from file
    if target.is_dir():
        raise BadReport("files were uploaded into a folder of this name")


def store_artifact(*, claim: Claim, path: str, sha256: str, stream: BinaryIO, now: datetime) -> Artifact:
    """Store an upload of a live claim whole or not at all.

    The same file again changes nothing. Raises BadReport (path or digest), FileTooLarge and
    StaleAttempt.
    """
    if not safe_path(path) or len(path) > 300 or max(map(len, path.split("/"))) > LONGEST_NAME:
        raise BadReport(
            f"the path must be relative, without .., at most 300 characters and {LONGEST_NAME} in each name"
        )
    job_id = claim.attempt.job_id
    target = artifact_path(job_id, str(claim.pk), path)
    _make_way(target)
    with arriving() as partial:
        digest, size = write_new(stream, partial, limit=settings.MAX_ARTIFACT_BYTES)
        if digest != sha256:
            raise BadReport("the content does not match X-Content-SHA256; send it again")
        with transaction.atomic():
            locked(job_id)
            if Attempt.objects.filter(pk=claim.attempt_id, ended_at__isnull=False).exists():
                raise StaleAttempt("This attempt has ended; its files are not wanted any more.")
            partial.replace(target)
            part = OF_CHECKPOINT.match(path)
            return Artifact.objects.update_or_create(
                claim=claim,
                path=path,
                defaults={
                    "job_id": job_id,
                    "sha256": sha256,
                    "bytes": size,
                    "checkpoint_step": int(part[1]) if part else None,
                    "at": now,
                },
            )[0]
