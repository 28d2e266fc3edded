"""Maintenance windows: the list, and what the scheduler keeps of them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from portal.accounts.models import Team, User
from portal.accounts.selectors import visible_teams
from scheduler.core.limits import NO_TEAM, Window
from scheduler.errors import NotFound
from scheduler.models import Job, MaintenanceWindow, Node
from scheduler.states import LIVE, STOPPABLE

NAMED = 3  # nodes that a reason names


def all_windows() -> QuerySet[MaintenanceWindow]:
    """All windows with their nodes, in the order in which they begin."""
    return MaintenanceWindow.objects.select_related("team", "author").prefetch_related("nodes")


def windows_until_now(now: datetime) -> QuerySet[MaintenanceWindow]:
    """The windows that have not ended."""
    return all_windows().filter(ends_at__gt=now)


def known_teams(user: User) -> frozenset[int]:
    """The teams whose names the person may know."""
    return frozenset(visible_teams(user).values_list("pk", flat=True))


def team_shown(window: MaintenanceWindow, known: frozenset[int]) -> str:
    """The team for which it is; empty for none."""
    if window.team is None:
        return ""
    return window.team.name if window.team.pk in known else "another team"


def nodes_to_close() -> list[tuple[str, str]]:
    """Ids and names of the nodes that a window may name."""
    return list(Node.present.order_by("name").values_list("pk", "name"))


def teams_to_reserve_for() -> list[str]:
    """Names of teams."""
    return list(Team.objects.order_by("name").values_list("name", flat=True))


def get_window(window_id: int) -> MaintenanceWindow:
    """Raises NotFound."""
    found = MaintenanceWindow.objects.select_related("team").filter(pk=window_id).first()
    if found is None:
        raise NotFound("There is no such window; it may have been removed.")
    return found


def windows_in_force(now: datetime) -> tuple[Window, ...]:
    """The windows as policies see them."""
    return tuple(_window(row) for row in windows_until_now(now))


def _window(row: MaintenanceWindow) -> Window:
    return Window(
        closes_at=(row.begins_at - _lead()).timestamp(),
        ends_at=row.ends_at.timestamp(),
        nodes=frozenset(node.pk for node in row.nodes.all()),
        team=str(row.team_id) if row.team_id else NO_TEAM,
        in_words=in_words(row),
    )


def in_words(window: MaintenanceWindow) -> str:
    """The window for owners of jobs, who may not know the team."""
    names = [node.name for node in window.nodes.all()]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    begins, ends = (at.isoformat(timespec="minutes") for at in (window.begins_at, window.ends_at))
    why = "reserved" if window.team_id else "closed for maintenance"
    note = f": {window.note}" if window.note else ""
    have = "is" if len(names) == 1 else "are"
    return f"{', '.join(names[:NAMED])}{more} {have} {why} from {begins} to {ends}{note}."


def closed_jobs(window: MaintenanceWindow) -> QuerySet[Job]:
    """Jobs that run on its nodes and may not stay there."""
    on_nodes = Job.objects.filter(
        state__in=LIVE & STOPPABLE,
        attempts__ended_at__isnull=True,
        attempts__claims__node__in=window.nodes.all(),
    )
    if window.team_id:
        on_nodes = on_nodes.exclude(team_id=window.team_id)
    return on_nodes.distinct()


def closing(now: datetime) -> list[MaintenanceWindow]:
    """Windows whose nodes are to be empty of others' jobs by now, or soon."""
    return [row for row in windows_until_now(now) if row.begins_at - _lead() <= now]


def _lead() -> timedelta:
    """How long before a window jobs are saved and stopped."""
    return timedelta(seconds=settings.WINDOW_LEAD_S)
