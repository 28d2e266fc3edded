"""Reading uploads. Visibility is decided here and in selectors.jobs, nowhere else."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from portal.accounts.models import User
from scheduler.errors import NotFound
from scheduler.models import DatasetFile


def visible_files(user: User) -> QuerySet[DatasetFile]:
    """The user's files and those of their teams; all for administrators."""
    files = DatasetFile.objects.all()
    if user.is_admin:
        return files
    return files.filter(Q(owner=user) | Q(team__in=user.team_ids))


def get_file(user: User, file_id: str) -> DatasetFile:
    """The file. Raises NotFound for a foreign one just as for one that does not exist."""
    found = visible_files(user).filter(pk=file_id).first()
    if found is None:
        raise NotFound(f"There is no file {file_id}.")
    return found
