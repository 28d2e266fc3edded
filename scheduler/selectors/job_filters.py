"""Jobs that a list is narrowed down to."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q, QuerySet

from portal.accounts.models import Team, User
from portal.accounts.public_ids import key_of
from scheduler.models import Attempt, Job, Node
from scheduler.selectors.public_states import state_condition
from scheduler.states import TERMINAL, JobState

GOING_ON = [state for state in JobState if state not in TERMINAL]
LIVE = "live"  # a word for all states in which a job has not ended
OWN = "me"


def in_states(jobs: QuerySet[Job], words: Collection[str]) -> QuerySet[Job]:
    """Jobs shown in one of these states, or not ended if `live` is among the words."""
    wanted = Q(pk__in=[])
    for word in words:
        wanted |= Q(state__in=GOING_ON) if word == LIVE else state_condition(word)
    return jobs.filter(wanted) if words else jobs


def of_owner(jobs: QuerySet[Job], asker: User, text: str) -> QuerySet[Job]:
    """Jobs of the asker (`me`), or of the person of this name or id."""
    if text == OWN:
        return jobs.filter(owner=asker)
    key = key_of(User, text)
    return jobs.filter(owner=key) if key is not None else jobs.filter(owner__username=text)


def of_team(jobs: QuerySet[Job], text: str) -> QuerySet[Job]:
    key = key_of(Team, text)
    return jobs.filter(team=key) if key is not None else jobs.filter(team__name=text)


def of_node(jobs: QuerySet[Job], text: str) -> QuerySet[Job]:
    """Jobs with an attempt on the node of this id or name."""
    nodes = list(Node.objects.filter(Q(pk=text) | Q(name=text)).values_list("pk", flat=True))
    return jobs.filter(pk__in=Attempt.objects.filter(claims__node__in=nodes).values("job"))
