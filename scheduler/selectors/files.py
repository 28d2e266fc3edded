"""Reading uploads. Visibility is decided here and in selectors.jobs, nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Max, Q, QuerySet, Sum

from portal.accounts.models import User
from scheduler.errors import NotFound
from scheduler.models import DatasetFile


def visible_files(user: User) -> QuerySet[DatasetFile]:
    """The user's files and those of their teams; all for administrators."""
    files = DatasetFile.objects.all()
    if user.is_admin:
        return files
    return files.filter(Q(owner=user) | Q(team__in=user.team_ids))


@dataclass(frozen=True, slots=True)
class Storage:
    """What a person's uploads take, and may take."""

    used_bytes: int
    quota_bytes: int


def storage_of(owner: User) -> Storage:
    """Equal content is kept, and counted, once."""
    contents = DatasetFile.objects.filter(owner=owner).order_by().values("sha256").annotate(size=Max("bytes"))
    used = contents.aggregate(total=Sum("size"))["total"] or 0
    return Storage(used_bytes=used, quota_bytes=settings.STORAGE_QUOTA_BYTES)


def get_file(user: User, file_id: str) -> DatasetFile:
    """The file. Raises NotFound for a foreign one just as for one that does not exist."""
    found = visible_files(user).filter(pk=file_id).first()
    if found is None:
        raise NotFound(f"There is no file {file_id}.")
    return found
