"""Maintenance windows and reservations, set by administrators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from portal.accounts.models import Team, User
from portal.accounts.people import require_admin
from portal.accounts.services import audit
from scheduler import hints
from scheduler.errors import BadParameters, Conflict
from scheduler.models import MaintenanceWindow, Node

FURTHEST = timedelta(days=366)
LONGEST_NOTE = 300
MOST_NODES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowValues:
    """When which nodes are closed.

    nodes: ids. team: the name of the one whose jobs may use them; empty: nobody's.
    """

    begins_at: datetime
    ends_at: datetime
    nodes: Sequence[str]
    team: str = ""
    note: str = ""


@transaction.atomic
def add_window(*, values: WindowValues, actor: User, now: datetime) -> MaintenanceWindow:
    """Close nodes during a time.

    Raises BadParameters naming the field, NotAllowed.
    """
    require_admin(actor)
    window = MaintenanceWindow(author=actor, created_at=now)
    _write(window, values, now)
    audit(action="window added", actor=actor, target=f"window {window.pk}", data=_audit_data(window), now=now)
    hints.tick()
    return window


@transaction.atomic
def change_window(
    *, window: MaintenanceWindow, changes: Mapping[str, Any], actor: User, now: datetime
) -> MaintenanceWindow:
    """Change some of its values, as `WindowValues` names them.

    Nothing happens if they are so already.

    Raises BadParameters naming the field, Conflict if it is gone, NotAllowed.
    """
    require_admin(actor)
    held = MaintenanceWindow.objects.select_for_update(of=("self",)).filter(pk=window.pk).first()
    if held is None:
        raise Conflict("The window was removed meanwhile.")
    before = _values_of(held)
    values = replace(before, **changes)
    if values != before:
        was = _audit_data(held)
        _write(held, values, now)
        audit(
            action="window changed",
            actor=actor,
            target=f"window {held.pk}",
            data={"from": was, "to": _audit_data(held)},
            now=now,
        )
        hints.tick()
    return held


def _write(window: MaintenanceWindow, values: WindowValues, now: datetime) -> None:
    _check_times(values, now)
    team = Team.objects.filter(name=values.team).first() if values.team else None
    if values.team and team is None:
        raise BadParameters({"team": f"There is no team {values.team}; leave it empty to close the nodes."})
    nodes = _nodes(values)
    _check_overlap(values, nodes, team, window.pk)
    window.begins_at, window.ends_at = values.begins_at, values.ends_at
    window.team, window.note = team, values.note
    window.save()
    window.nodes.set(nodes)


def _values_of(window: MaintenanceWindow) -> WindowValues:
    return WindowValues(
        begins_at=window.begins_at,
        ends_at=window.ends_at,
        nodes=sorted(node.pk for node in window.nodes.all()),
        team=window.team.name if window.team else "",
        note=window.note,
    )


@transaction.atomic
def remove_window(*, window: MaintenanceWindow, actor: User, now: datetime) -> None:
    """Open its nodes again, or do not close them.

    Nothing happens if it is gone already.

    Raises NotAllowed.
    """
    require_admin(actor)
    held = MaintenanceWindow.objects.select_for_update(of=("self",)).filter(pk=window.pk).first()
    if held is None:
        return
    audit(action="window removed", actor=actor, target=f"window {held.pk}", data=_audit_data(held), now=now)
    held.delete()
    hints.tick()


def _check_times(values: WindowValues, now: datetime) -> None:
    errors = {}
    if values.ends_at <= values.begins_at:
        errors["ends_at"] = "must be later than the beginning"
    elif values.ends_at <= now:
        errors["ends_at"] = "is over already; choose a later time"
    if values.ends_at > now + FURTHEST:
        errors.setdefault("ends_at", "must be within a year from now")
    if len(values.note) > LONGEST_NOTE:
        errors["note"] = f"must have at most {LONGEST_NOTE} characters"
    if errors:
        raise BadParameters(errors)


def _nodes(values: WindowValues) -> list[Node]:
    """Held until the transaction ends, so that windows of a node are added one by one."""
    wanted = set(values.nodes)
    if not wanted:
        raise BadParameters({"nodes": "name at least one node"})
    nodes = list(Node.present.select_for_update(no_key=True).filter(pk__in=wanted).order_by("pk"))
    if unknown := sorted(wanted - {node.pk for node in nodes}):
        raise BadParameters({"nodes": f"There is no node {unknown[0]}."})
    return nodes


def _check_overlap(
    values: WindowValues, nodes: Sequence[Node], team: Team | None, itself: int | None
) -> None:
    at_the_time = MaintenanceWindow.objects.filter(
        begins_at__lt=values.ends_at, ends_at__gt=values.begins_at, nodes__in=nodes
    )
    for other in at_the_time.distinct().prefetch_related("nodes"):
        if other.pk == itself or other.team_id == (team.pk if team else None):
            continue
        shared = next(node for node in other.nodes.all() if node in nodes)
        raise BadParameters(
            {
                "begins_at": f"{shared.name} has another window then, from"
                f" {other.begins_at.isoformat(timespec='minutes')} to"
                f" {other.ends_at.isoformat(timespec='minutes')}, for others; choose another time or remove"
                " that window."
            }
        )


def _audit_data(window: MaintenanceWindow) -> dict[str, object]:
    return {
        "begins_at": window.begins_at.isoformat(),
        "ends_at": window.ends_at.isoformat(),
        "nodes": [node.name for node in window.nodes.all()],
        "team": window.team.name if window.team else "",
        "note": window.note,
    }
