"""Uploads of training data: checked while they stream in, stored by digest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import transaction

from portal.accounts.models import Team, User
from scheduler.errors import BadParameters
from scheduler.models import DatasetFile
from scheduler.services.files.checking import check
from scheduler.services.files.quotas import require_room
from scheduler.services.files.storage import arriving, make_folder, write_new
from scheduler.services.idempotency import Creation, unkeyed
from trainer.written import clean_name

LOOKED_BACK = timedelta(days=7)  # for content of deleted files that a killed process did not remove


def path_of(sha256: str) -> Path:
    """Where content with this digest lies."""
    return Path(settings.DATA_DIR) / "files" / sha256[:2] / sha256


def store_file(
    *,
    owner: User,
    stream: BinaryIO,
    filename: str,
    now: datetime,
    creation: Creation = unkeyed,
    sha256: str = "",
    expires_at: datetime | None = None,
    team: Team | None = None,
) -> DatasetFile:
    """Store an upload of training data.

    sha256: what its content must have, where the sender says so. team: whose it is, if not that to which the
    owner's token is bound. Raises BadFile with the first wrong lines,
    BadParameters, FileTooLarge, OverQuota, TooBusy. The content is
    written under a generated name and moved into place when it is complete and checked, so that
    a lost connection leaves neither a row nor a file. `creation` opens the transaction of the
    row.
    """
    name = shown_name(filename)
    with arriving() as partial:
        digest, size = write_new(stream, partial, limit=settings.MAX_UPLOAD_BYTES)
        if sha256 not in ("", digest):
            raise BadParameters({"sha256": f"is {sha256}, but what arrived has {digest}; send it again"})
        facts = check(partial)
        with creation() as note:
            require_room(owner=owner, sha256=digest, size=size)
            _hold_content(digest)
            _keep(partial, path_of(digest))
            file = DatasetFile.objects.create(
                owner=owner,
                team_id=team.pk if team else owner.bound_team_id,
                filename=name,
                sha256=digest,
                bytes=size,
                rows=facts.rows,
                format=facts.format,
                lengths=[list(pair) for pair in facts.lengths],
                unused_fields=list(facts.unused),
                created_at=now,
                expires_at=expires_at,
            )
            note(file)
    return file


def hold_files(files: Mapping[str, DatasetFile | None]) -> None:
    """Protect these files from deletion until the transaction ends.

    The files are given by the fields that name them. Raises BadParameters for those that were
    deleted since they were chosen.
    """
    wanted = {field: file.pk for field, file in files.items() if file is not None}
    held = DatasetFile.present.select_for_update(no_key=True).filter(pk__in=wanted.values()).order_by("pk")
    present = set(held.values_list("pk", flat=True))
    if gone := [field for field, pk in wanted.items() if pk not in present]:
        raise BadParameters(dict.fromkeys(gone, "was deleted meanwhile; choose another file"))


@transaction.atomic
def remove_content(sha256: str) -> bool:
    """Remove content that no file has any more; returns whether there was any."""
    _hold_content(sha256)
    if DatasetFile.present.filter(sha256=sha256).exists() or not path_of(sha256).exists():
        return False
    path_of(sha256).unlink()
    return True


def forget_deleted(now: datetime) -> int:
    """Remove the content of files whose deletion was committed but cut off.

    Their process was killed just after the commit.
    """
    lately = DatasetFile.objects.filter(deleted_at__gt=now - LOOKED_BACK).order_by()
    return sum(map(remove_content, lately.values_list("sha256", flat=True).distinct()))


def _hold_content(sha256: str) -> None:
    """Hold content until the transaction ends.

    Nobody else stores or removes content meanwhile that was here before.
    """
    same = DatasetFile.objects.select_for_update().filter(sha256=sha256).order_by("pk")
    list(same.values_list("pk"))


def _keep(partial: Path, target: Path) -> None:
    make_folder(target.parent)
    partial.replace(target)


def shown_name(filename: str) -> str:
    """The base name: it is shown, never used as a path. Raises BadParameters."""
    try:
        return clean_name(filename.replace("\\", "/").rsplit("/", 1)[-1])[:255] or "unnamed.jsonl"
    except ValueError as wrong:
        raise BadParameters({"file": f"the name of the file: {wrong}"}) from wrong
