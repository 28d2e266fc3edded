"""The storage quota of a person.

An upload must fit beside stored files, files that jobs left, and uploads under way (I13). What a training
brings is never refused for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction

from portal.accounts.models import User
from scheduler.errors import OverQuota
from scheduler.models import DatasetFile, UploadHold
from scheduler.selectors.files import Storage, storage_of

log = logging.getLogger(__name__)
# A hold that old belongs to a process that was killed: no upload is waited for that long.
HOLD_LIFETIME = timedelta(hours=6)


@contextmanager
def upload_hold(*, owner: User, size: int, now: datetime) -> Iterator[None]:
    """Hold `size` bytes of the quota during an upload.

    They count while it arrives and lies in a temporary file. Raises OverQuota.
    """
    with transaction.atomic():
        _lock(owner)
        under_way = UploadHold.objects.filter(owner=owner, begun_at__gt=now - HOLD_LIFETIME)
        held = sum(under_way.values_list("bytes", flat=True))
        _require_room(storage_of(owner), held + size)
        hold = UploadHold.objects.create(owner=owner, bytes=size, begun_at=now)
    try:
        yield
    finally:
        try:
            hold.delete()
        except DatabaseError:  # it ends by its age
            log.warning("an upload's hold could not be ended", extra={"user": owner.pk})


def require_room(*, owner: User, sha256: str, size: int) -> None:
    """Raise OverQuota unless that content fits beside the person's files.

    Content that they have already counts once. To be called in the transaction that stores it:
    it locks the person's row, so that no other upload counts meanwhile.
    """
    _lock(owner)
    if not DatasetFile.present.filter(owner=owner, sha256=sha256).exists():
        _require_room(storage_of(owner), size)


def forget_old_holds(now: datetime) -> int:
    """Returns how many."""
    return UploadHold.objects.filter(begun_at__lte=now - HOLD_LIFETIME).delete()[0]


def _lock(owner: User) -> None:
    """Lock the person's row.

    Rows that refer to the person may be written meanwhile: a deletion of a file holds that file
    first.
    """
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)


def _require_room(storage: Storage, size: int) -> None:
    if storage.used_bytes + size > storage.quota_bytes:
        raise OverQuota(
            f"This exceeds your storage quota: {storage.used_bytes:,} of {storage.quota_bytes:,} bytes are in"
            f" use, and this file needs {size:,} more. Choose a file that is already here, delete files that"
            " you no longer need (page Files, or DELETE /api/files/ID/) or the files of ended jobs (on their"
            " pages, or DELETE /api/jobs/ID/artifacts/), or ask an administrator for more."
        )
