"""Reading uploads. Visibility is decided here and in selectors.jobs, nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Func, IntegerField, Max, OuterRef, Q, QuerySet, Subquery, Sum

from knowledge.core.domain.wording import counted
from portal.accounts.models import Membership, Role, User
from portal.accounts.time_zones import local
from scheduler.errors import NotFound
from scheduler.models import Artifact, DatasetFile, Job, Upload
from scheduler.selectors.jobs import visible_jobs
from scheduler.states import TERMINAL, JobState, StopFor


def visible_files(user: User) -> QuerySet[DatasetFile]:
    """Return the user's files and those of their teams.

    Administrators see all; a token that is bound to a team sees that team's alone. Deleted files are shown to
    nobody.
    """
    return _seen(DatasetFile.present.all(), user)


def _seen(files: QuerySet[DatasetFile], user: User) -> QuerySet[DatasetFile]:
    return files if user.is_admin else _own(files, user)


def _own(files: QuerySet[DatasetFile], user: User) -> QuerySet[DatasetFile]:
    """Those of the user and of their teams, also of administrators."""
    if user.bound_team_id is not None:
        return files.filter(team__in=user.team_ids)
    return files.filter(Q(owner=user) | Q(team__in=user.team_ids))


def file_labels(files: Iterable[DatasetFile], reader: User) -> dict[str, str]:
    """Return what tells each file apart in a choice, by its id.

    That is its name, rows, owner, team and date; of files that are alike in these the time, too. The files
    were read with their owners and teams.
    """
    shown = list(files)
    labels = {file.pk: _label(file, reader, "%Y-%m-%d") for file in shown}
    alike = Counter(labels.values())
    exactly = {file.pk: _label(file, reader, "%Y-%m-%d %H:%M:%S") for file in shown}
    return {pk: exactly[pk] if alike[label] > 1 else label for pk, label in labels.items()}


def _label(file: DatasetFile, reader: User, moment: str) -> str:
    whose = "yours" if file.owner_id == reader.pk else f"of {file.owner.username}"
    team = f" for {file.team.name}" if file.team else ""
    at = f"{local(file.created_at):{moment}}"
    return f"{file.filename} ({counted(file.rows, 'row')}), {whose}{team}, {at}"


@dataclass(frozen=True, slots=True)
class Storage:
    """The bytes that a person's uploads and jobs take, and may take."""

    used_bytes: int
    quota_bytes: int


def storage_of(owner: User) -> Storage:
    """What a person takes: uploads, equal ones once, and all that jobs left.

    Those that come in parts count as a whole.
    """
    contents = DatasetFile.present.filter(owner=owner).order_by().values("sha256").annotate(size=Max("bytes"))
    used = contents.aggregate(total=Sum("size"))["total"] or 0
    of_jobs = Artifact.objects.filter(job__owner=owner).aggregate(total=Sum("bytes"))["total"] or 0
    pending = Upload.objects.filter(owner=owner, state=Upload.State.PENDING)
    in_parts = pending.aggregate(total=Sum("bytes"))["total"] or 0
    return Storage(used_bytes=used + in_parts + of_jobs, quota_bytes=settings.STORAGE_QUOTA_BYTES)


def get_file(user: User, file_id: str) -> DatasetFile:
    """The file. Raises NotFound for a foreign one just as for one that does not exist."""
    found = visible_files(user).filter(pk=file_id).first()
    if found is None:
        raise NotFound(f"There is no file {file_id}.")
    return found


def deletable_files(user: User) -> QuerySet[DatasetFile]:
    """The user's files and those of teams that they lead; all for administrators."""
    files = visible_files(user)
    if user.changes_own_alone:
        return files.filter(owner=user)
    if user.is_admin:
        return files
    led = Membership.objects.filter(user=user, role=Role.LEAD).values("team")
    return files.filter(Q(owner=user) | Q(team__in=led))


def jobs_that_need(file: DatasetFile) -> QuerySet[Job]:
    """Unfinished jobs that train or validate on it, also those of other people.

    One that stops for good reads no more of it.
    """
    using = Job.objects.filter(Q(training_file=file) | Q(validation_file=file))
    return using.exclude(state__in=TERMINAL).exclude(state=JobState.STOPPING, stop_for=StopFor.CANCEL)


def with_uses(files: QuerySet[DatasetFile], user: User) -> QuerySet[DatasetFile]:
    """Annotate files with the number of jobs that use them.

    uses: all jobs; live_uses: those that have not ended.
    Only jobs that the user sees count.
    """
    jobs = visible_jobs(user).filter(Q(training_file=OuterRef("pk")) | Q(validation_file=OuterRef("pk")))
    return files.annotate(uses=_counted(jobs), live_uses=_counted(jobs.exclude(state__in=TERMINAL)))


def _counted(jobs: QuerySet[Job]) -> Subquery:
    """Count jobs without a group, so that there is a row for no jobs, too."""
    return Subquery(jobs.order_by().values(n=Func("pk", function="COUNT")), output_field=IntegerField())


def ever_visible_files(user: User) -> QuerySet[DatasetFile]:
    """Those of `visible_files`, and those that were deleted since.

    They are places in a list, and never shown.
    """
    return _seen(DatasetFile.objects.all(), user)


def own_uploads(user: User) -> QuerySet[Upload]:
    """The user's uploads, newest first; those of the team to which a token is bound."""
    mine = Upload.objects.filter(owner=user).select_related("file__owner", "file__team")
    return mine if user.bound_team_id is None else mine.filter(team=user.bound_team_id)


def get_upload(user: User, upload_id: str) -> Upload:
    """An upload of the user's own, with its parts and its file.

    Raises NotFound.
    """
    found = own_uploads(user).prefetch_related("parts").filter(pk=upload_id).first()
    if found is None:
        raise NotFound(f"There is no upload {upload_id}.")
    found.owner = user  # with what its token leaves it
    return found


def file_with_content(user: User, sha256: str) -> DatasetFile | None:
    """The newest file with this content that is the user's own or of a team of theirs.

    One that goes at a set time is none: who sends a file without one expects it to stay.
    """
    lasting = DatasetFile.present.filter(sha256=sha256, expires_at__isnull=True)
    return _own(lasting, user).select_related("owner", "team").order_by("-pk").first()
