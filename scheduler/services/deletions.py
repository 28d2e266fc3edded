"""Taking away what jobs hang on: refused while jobs that have not ended need it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import partial

from django.db import transaction

from knowledge.catalogue import catalogue_entries
from knowledge.models import CatalogEntry
from portal.accounts import people
from portal.accounts.errors import NotAllowed
from portal.accounts.models import Team, User
from portal.accounts.services import audit
from portal.events.types import EventType
from scheduler import hints
from scheduler.errors import Conflict, NotFound
from scheduler.models import Claim, DatasetFile, Gpu, Job, Node
from scheduler.selectors.cluster.calibrations import open_calibrations
from scheduler.selectors.files import deletable_files, jobs_that_need
from scheduler.selectors.jobs import visible_jobs
from scheduler.services.files.uploads import remove_content
from scheduler.services.nodes.events import note_node
from scheduler.states import REMOVABLE, TERMINAL
from trainer.protocol import RANDOM_MODEL

NAMED = 5  # jobs that stand in the way of a deletion


@transaction.atomic
def remove_node(*, node: Node, actor: User, now: datetime) -> None:
    """Take a node out of the portal for good.

    It gets no work, no list and no offer includes it, and its token is worthless. Its row
    stays, so that the history of jobs goes on naming it; its name is free for another machine.
    A checkpoint that lies there alone is out of reach from then on. Raises Conflict while it
    may be given work or a job has a claim on it, and when it was removed already.
    """
    node = Node.objects.select_for_update().get(pk=node.pk)
    if node.removed_at is not None:
        raise Conflict("The node has already been removed.")
    if node.state not in REMOVABLE:
        raise Conflict(f"The node is {node.state}; drain it first.")
    if Claim.objects.filter(node=node, attempt__ended_at__isnull=True).exists():
        raise Conflict("A job still has GPUs of this node; wait for its end or cancel it first.")
    # No digest looks like this, so no token is ever the one of this node again.
    Node.objects.filter(pk=node.pk).update(removed_at=now, token_hash=f"removed {node.pk}", state_by=actor)
    note_node(node=node, event=EventType.NODE_REMOVED, now=now, actor=actor)
    audit(action="node removed", actor=actor, target=node.pk, data={"name": node.name}, now=now)
    hints.refresh_options()


@transaction.atomic
def delete_team(*, team: Team, actor: User, now: datetime) -> None:
    """Dissolve a team; its ended jobs stay with their owners.

    Its service accounts end. Raises Conflict while jobs have not ended.
    """
    team = Team.objects.select_for_update().get(pk=team.pk)
    _refuse_live(Job.objects.filter(team=team).exclude(state__in=TERMINAL).count(), team.name)
    audit(action="team deleted", actor=actor, target=f"team {team.pk}", data={"name": team.name}, now=now)
    for account in team.service_accounts.filter(is_active=True):
        people.lock_out(user=account, actor=actor, now=now)
    team.delete()


@transaction.atomic
def delete_catalogue_entry(*, kind: str, name: str, actor: User, now: datetime) -> None:
    """Take a model or GPU that was added out of the catalogue.

    Executions that name it stay, and teach again as soon as a name is added again. Raises NotFound for what
    was not added, Conflict while a node offers it or a job or calibration that has not ended needs it.
    """
    entry = CatalogEntry.objects.select_for_update().filter(kind=kind, name=name).first()
    if entry is None:
        raise NotFound(f"{name[:100]} is not among the {kind}s that were added; shipped ones stay.")
    jobs = Job.objects.exclude(state__in=TERMINAL)
    if kind == CatalogEntry.Kind.GPU:
        _refuse_offered(name)
        jobs = jobs.filter(fixed__gpu_model=name)
    else:
        _refuse_calibrated(name)
        jobs = jobs.filter(model__in=(name, RANDOM_MODEL + name))
    _refuse_live(jobs.count(), name)
    catalogue_entries.delete(entry=entry, actor=actor, now=now)


@transaction.atomic
def delete_file(*, file: DatasetFile, actor: User, now: datetime) -> None:
    """Delete an upload; its row stays, so that the history of jobs goes on naming it.

    Its content is removed once it is no other file's, and counts for no quota any more. Raises NotAllowed,
    Conflict while a job or calibration that has not ended needs it, NotFound when it was deleted already.
    """
    held = DatasetFile.present.select_for_update().filter(pk=file.pk).first()
    if held is None:
        raise NotFound(f"There is no file {file.pk}.")
    if not deletable_files(actor).filter(pk=held.pk).exists():
        raise NotAllowed("Only the file's owner, the leads of its team and administrators may delete it.")
    _refuse_needed(held, actor)
    DatasetFile.objects.filter(pk=held.pk).update(deleted_at=now)
    data = {"filename": held.filename, "bytes": held.bytes, "owner": held.owner.get_username()}
    audit(action="file deleted", actor=actor, target=held.pk, data=data, now=now)
    transaction.on_commit(partial(remove_content, held.sha256), robust=True)  # else the sweep does it


def delete_expired_files(now: datetime) -> int:
    """Delete files that their owners kept for a time, and return how many.

    Those that jobs need wait for these.
    """
    deleted = 0
    for file in DatasetFile.present.filter(expires_at__lte=now).select_related("owner"):
        with suppress(Conflict, NotFound):
            delete_file(file=file, actor=file.owner, now=now)
            deleted += 1
    return deleted


def _refuse_needed(file: DatasetFile, actor: User) -> None:
    """Names the jobs that the actor sees; of others only how many there are."""
    needing = jobs_that_need(file)
    seen = visible_jobs(actor).filter(pk__in=needing.values("pk"))[:NAMED]
    names = [f"{job.name} ({job.pk})" if job.name else job.pk for job in seen]
    if more := needing.count() - len(names):
        names.append(f"{more} more" if names else "jobs that you cannot see")
    if names:
        raise Conflict(f"Still needed by {' and '.join(names)}; cancel them or wait for their end first.")
    if calibration := open_calibrations().filter(file=file).first():
        raise Conflict(f"The calibration of {calibration.node.name} still needs it; cancel it or wait first.")


def _refuse_offered(gpu_model: str) -> None:
    nodes = Gpu.present.filter(model=gpu_model).order_by("node__name").values_list("node__name", flat=True)
    if names := list(nodes.distinct()):
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise Conflict(
            f"The node {names[0]}{more} still offers {gpu_model}; remove it from the portal first."
        )


def _refuse_calibrated(model: str) -> None:
    planned = {config["model_name"] for calibration in open_calibrations() for config in calibration.plan}
    if planned & {model, RANDOM_MODEL + model}:
        raise Conflict(f"A calibration that has not ended trains {model}; cancel it or wait first.")


def _refuse_live(live: int, of: str) -> None:
    if live:
        jobs = "1 job" if live == 1 else f"{live} jobs"
        raise Conflict(f"{jobs} of {of} {'has' if live == 1 else 'have'} not ended; cancel or wait first.")
