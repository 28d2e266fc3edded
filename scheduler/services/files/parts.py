"""Uploads that come in parts, in any order, and are completed once."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.db import models, transaction

from portal.accounts.models import User
from scheduler.errors import BadParameters, Conflict, FileTooLarge, IllegalTransition
from scheduler.models import DatasetFile, Upload, UploadPart
from scheduler.services.files.quotas import require_room
from scheduler.services.files.storage import arriving, make_folder, refuse_on_full_disk, write_new
from scheduler.services.files.uploads import shown_name, store_file
from scheduler.services.idempotency import Creation, unkeyed

LASTS = timedelta(hours=24)
PART_BYTES = 64 << 20
MOST_PARTS = 10_000
OPEN_AT_ONCE = 100  # uploads of one person that are neither complete nor ended


def begin_upload(
    *,
    owner: User,
    filename: str,
    size: int,
    now: datetime,
    sha256: str = "",
    keep_s: int | None = None,
    creation: Creation = unkeyed,
) -> Upload:
    """Begin an upload of `size` bytes, which the quota holds from now on.

    sha256: of the whole, if it is known. keep_s: how long the file is kept. Raises BadParameters,
    FileTooLarge, OverQuota, StorageFull, and Conflict where too many are open.
    """
    refuse_on_full_disk()
    name = shown_name(filename)
    if size > settings.MAX_UPLOAD_BYTES:
        raise FileTooLarge(f"The file is larger than {settings.MAX_UPLOAD_BYTES:,} bytes.")
    with creation() as note:
        require_room(owner=owner, sha256=sha256, size=size)
        if Upload.objects.filter(owner=owner, state=Upload.State.PENDING).count() >= OPEN_AT_ONCE:
            raise Conflict(f"You have {OPEN_AT_ONCE} uploads under way; complete or cancel one first.")
        upload = Upload.objects.create(
            owner=owner, team_id=owner.bound_team_id, filename=name, bytes=size, sha256=sha256,
            keep_s=keep_s, created_at=now, expires_at=now + LASTS,
        )  # fmt: skip
        note(upload)
    return upload


def add_part(
    *, upload: Upload, stream: BinaryIO, now: datetime, sha256: str = "", creation: Creation = unkeyed
) -> UploadPart:
    """Add a part of at most 64 MB.

    sha256: of the part, if the sender says it. Raises IllegalTransition unless the upload is pending,
    BadParameters where the parts are more than was announced, FileTooLarge, StorageFull.
    """
    _require_pending(upload, now)
    with arriving() as arrived:
        digest, size = write_new(stream, arrived, limit=PART_BYTES)
        if size == 0:
            raise BadParameters({"data": "is empty; send at least one byte"})
        if sha256 not in ("", digest):
            raise BadParameters(
                {"data": f"has the SHA-256 {digest} instead of {sha256}; send this part again"}
            )
        with creation() as note:
            held = _hold(upload)
            _require_pending(held, now)
            _require_room_for_part(held, size)
            part = UploadPart.objects.create(upload=held, bytes=size, sha256=digest, created_at=now)
            make_folder(_folder(held))
            arrived.replace(_path(part))
            note(part)
    return part


def complete_upload(
    *, upload: Upload, part_ids: Sequence[str], now: datetime, md5: str = "", sha256: str = ""
) -> Upload:
    """Put the parts together in this order, check them, and store the file.

    Completing it again with the same parts changes nothing. Raises IllegalTransition, BadFile, OverQuota,
    TooBusy, and BadParameters where parts are missing or a digest is another one; it is still pending then.
    """
    if upload.state == Upload.State.COMPLETED and list(part_ids) == upload.part_ids:
        return upload
    _require_pending(upload, now)
    parts = _in_order(upload, part_ids)
    keep = timedelta(seconds=upload.keep_s) if upload.keep_s else None
    if upload.sha256 and sha256 not in ("", upload.sha256):
        raise BadParameters({"sha256": f"was {upload.sha256} when the upload began"})
    content = _Parts([_path(part) for part in parts], md5)
    try:
        store_file(
            owner=upload.owner, stream=cast(BinaryIO, content), filename=upload.filename, now=now,
            sha256=sha256 or upload.sha256, expires_at=now + keep if keep else None,
            team=upload.team,
            creation=lambda: _completion(upload, [part.pk for part in parts], now),
        )  # fmt: skip
    except (FileNotFoundError, _CompletedMeanwhile):  # a twin was quicker, or it was cancelled
        upload.refresh_from_db()
        if upload.part_ids != list(part_ids):
            _require_pending(upload, now)
            raise
        return upload
    shutil.rmtree(_folder(upload), ignore_errors=True)
    upload.refresh_from_db()
    return upload


def cancel_upload(*, upload: Upload, now: datetime) -> Upload:
    """End an upload and free what it held.

    Raises IllegalTransition for one that is complete or expired.
    """
    with transaction.atomic():
        held = _hold(upload)
        if held.state != Upload.State.CANCELLED:
            _require_pending(held, now)
            _end(held, Upload.State.CANCELLED)
    shutil.rmtree(_folder(held), ignore_errors=True)
    return held


def end_expired_uploads(now: datetime) -> int:
    """End uploads that were not completed in time; returns how many."""
    ended = 0
    for upload in Upload.objects.filter(state=Upload.State.PENDING, expires_at__lte=now):
        with transaction.atomic():
            held = _hold(upload)
            if held.state == Upload.State.PENDING:
                _end(held, Upload.State.EXPIRED)
                ended += 1
    folders = list(_all_parts().glob("*"))  # also those that a killed process left
    pending = Upload.objects.filter(state=Upload.State.PENDING, pk__in=[one.name for one in folders])
    for name in {one.name for one in folders} - set(pending.values_list("pk", flat=True)):
        shutil.rmtree(_all_parts() / name, ignore_errors=True)
    return ended


class _CompletedMeanwhile(Exception):
    """A twin has completed the upload with the same parts."""


@contextmanager
def _completion(upload: Upload, part_ids: list[str], now: datetime) -> Iterator[Callable[[Any], None]]:
    """The transaction in which the file is stored and the upload is complete.

    Its bytes are held no more.
    """
    with transaction.atomic():
        held = _hold(upload)
        if held.state == Upload.State.COMPLETED and held.part_ids == part_ids:
            raise _CompletedMeanwhile
        _require_pending(held, now)
        _end(held, Upload.State.COMPLETED, part_ids=part_ids)

        def note(file: models.Model) -> None:
            Upload.objects.filter(pk=held.pk).update(file=cast(DatasetFile, file))

        yield note


class _Parts:
    """Files one after the other, read as one stream.

    Raises BadParameters at the end if their MD5 is another one.
    """

    def __init__(self, paths: Sequence[Path], md5: str) -> None:
        self._left = list(paths)
        self._md5 = md5.lower()
        self._digest = hashlib.md5(usedforsecurity=False)
        self._open: BinaryIO | None = None

    def read(self, size: int) -> bytes:
        while True:
            if self._open is None:
                if not self._left:
                    self._check()
                    return b""
                self._open = self._left.pop(0).open("rb")
            if data := self._open.read(size):
                if self._md5:
                    self._digest.update(data)
                return data
            self._open.close()
            self._open = None

    def _check(self) -> None:
        if self._md5 not in ("", found := self._digest.hexdigest()):
            raise BadParameters(
                {"md5": f"is {self._md5}, but what arrived has {found}; send the parts again"}
            )


def _in_order(upload: Upload, part_ids: Sequence[str]) -> list[UploadPart]:
    """The parts of these ids, in their order.

    Raises BadParameters unless they are all that was announced, each once.
    """
    parts = {part.pk: part for part in upload.parts.all()}
    if unknown := next((one for one in part_ids if one not in parts), None):
        raise BadParameters({"part_ids": f"{unknown[:64]} is not a part of this upload"})
    if len(set(part_ids)) != len(part_ids):
        raise BadParameters({"part_ids": "names a part twice"})
    size = sum(parts[one].bytes for one in part_ids)
    if size != upload.bytes:
        raise BadParameters(
            {"part_ids": f"have {size:,} bytes together, and {upload.bytes:,} were announced; name all parts"}
        )
    return [parts[one] for one in part_ids]


def _require_pending(upload: Upload, now: datetime) -> None:
    state = upload.state
    if state == Upload.State.PENDING and upload.expires_at <= now:
        state = Upload.State.EXPIRED
    if state != Upload.State.PENDING:
        raise IllegalTransition(f"The upload is {state}; begin another one.", state)


def _require_room_for_part(upload: Upload, size: int) -> None:
    """Let parts that were sent twice, as after a lost answer, fit once."""
    sums = upload.parts.aggregate(bytes=models.Sum("bytes"), number=models.Count("pk"))
    if (sums["bytes"] or 0) + size > upload.bytes + max(PART_BYTES, upload.bytes):
        raise BadParameters(
            {"data": f"the parts are more than twice the {upload.bytes:,} bytes that were announced"}
        )
    if sums["number"] >= MOST_PARTS:
        raise BadParameters({"data": f"an upload has {MOST_PARTS:,} parts at most; send larger ones"})


def _hold(upload: Upload) -> Upload:
    return Upload.objects.select_for_update().get(pk=upload.pk)


def _end(upload: Upload, state: str, **columns: Any) -> None:
    Upload.objects.filter(pk=upload.pk).update(state=state, **columns)
    upload.state = state


def _all_parts() -> Path:
    return Path(settings.DATA_DIR) / "parts"


def _folder(upload: Upload) -> Path:
    return _all_parts() / upload.pk


def _path(part: UploadPart) -> Path:
    return _all_parts() / part.upload_id / part.pk
