"""Taking away what jobs hang on: refused while jobs that have not ended need it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from portal.accounts.models import Team, User
from portal.accounts.people import set_active
from portal.accounts.services import audit
from scheduler import hints
from scheduler.errors import Conflict
from scheduler.models import Claim, Job, Node
from scheduler.states import TERMINAL, NodeState


@transaction.atomic
def remove_node(*, node: Node, actor: User, now: datetime) -> None:
    """Forget a node that never ran anything; its token is worthless from then on.

    Raises Conflict while it may be given work, and for good when the history of jobs names it.
    """
    node = Node.objects.select_for_update().get(pk=node.pk)
    if node.state in (NodeState.READY, NodeState.DRAINING):
        raise Conflict(f"The node is {node.state}; drain it first.")
    if Claim.objects.filter(node=node).exists():
        raise Conflict("Jobs ran on this node and their history names it; it stays, and gets no work.")
    audit(action="node removed", actor=actor, target=node.pk, data={"name": node.name}, now=now)
    node.delete()
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
