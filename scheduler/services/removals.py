"""Taking away what jobs hang on: refused while jobs that have not ended need it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from portal.accounts.models import Team, User
from portal.accounts.people import set_active
from portal.accounts.services import audit
from scheduler import hints
from scheduler.errors import Conflict
from scheduler.models import Claim, Job, Node, NodeEvent
from scheduler.states import REMOVABLE, TERMINAL


@transaction.atomic
def remove_node(*, node: Node, actor: User, now: datetime) -> None:
    """Take a node out of the portal for good: no work, no list and no offer knows it, its token is worthless.

    Its row stays, so that the history of jobs goes on naming it; its name is free for another machine. A
    checkpoint that lies there alone is out of reach from then on. Raises Conflict while it may be given
    work or a job has a claim on it, and when it was removed already.
    """
    node = Node.objects.select_for_update().get(pk=node.pk)
    if node.removed_at is not None:
        raise Conflict("The node was removed already.")
    if node.state not in REMOVABLE:
        raise Conflict(f"The node is {node.state}; drain it first.")
    if Claim.objects.filter(node=node, attempt__ended_at__isnull=True).exists():
        raise Conflict("A job still has GPUs of this node; wait for its end or cancel it first.")
    # No digest looks like this, so no token is ever the one of this node again.
    Node.objects.filter(pk=node.pk).update(removed_at=now, token_hash=f"removed {node.pk}", state_by=actor)
    NodeEvent.objects.create(node=node, kind="removed", actor=actor, at=now)
    audit(action="node removed", actor=actor, target=node.pk, data={"name": node.name}, now=now)
    hints.refresh_options()


@transaction.atomic
def deactivate_user(*, user: User, actor: User, now: datetime) -> User:
    """Lock a person out; their history stays. Raises Conflict while jobs of theirs have not ended."""
    _refuse_live(Job.objects.filter(owner=user).exclude(state__in=TERMINAL).count(), user.get_username())
    return set_active(user=user, active=False, actor=actor, now=now)


@transaction.atomic
def delete_team(*, team: Team, actor: User, now: datetime) -> None:
    """Dissolve a team; its ended jobs stay with their owners. Raises Conflict while jobs have not ended."""
    team = Team.objects.select_for_update().get(pk=team.pk)
    _refuse_live(Job.objects.filter(team=team).exclude(state__in=TERMINAL).count(), team.name)
    audit(action="team deleted", actor=actor, target=f"team {team.pk}", data={"name": team.name}, now=now)
    team.delete()


def _refuse_live(live: int, of: str) -> None:
    if live:
        jobs = "1 job" if live == 1 else f"{live} jobs"
        raise Conflict(f"{jobs} of {of} {'has' if live == 1 else 'have'} not ended; cancel or wait first.")
