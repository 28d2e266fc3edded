"""The pages that the navigation leads to.

Each has its address, its view, its menu and its label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.http import HttpRequest, HttpResponse

from portal import disk
from portal.web.admin import audit, catalogue, policy, storage
from portal.web.analysis import analytics, history, simulations
from portal.web.jobs import files, jobs, queue
from portal.web.markets import markets
from portal.web.nodes import nodes
from portal.web.people import people, preferences, teams, tokens


class Menu(StrEnum):
    """Where a link stands."""

    MAIN = "main"
    ACCOUNT = "account"
    ADMINISTRATION = "administration"  # shown to administrators alone; the view must refuse others itself


@dataclass(frozen=True, slots=True)
class Page:
    """A page with a link of its own. address: without the leading slash."""

    menu: Menu
    label: str
    address: str
    view: Callable[..., HttpResponse]
    name: str


PAGES = (
    Page(Menu.MAIN, "Jobs", "jobs/", jobs.job_list, "jobs"),
    Page(Menu.MAIN, "Queue", "queue/", queue.queue, "queue"),
    Page(Menu.MAIN, "Nodes", "nodes/", nodes.node_list, "nodes"),
    Page(Menu.MAIN, "Markets", "markets/", markets.market_list, "markets"),
    Page(Menu.MAIN, "Analytics", "analytics/", analytics.analytics, "analytics"),
    Page(Menu.ACCOUNT, "Files", "files/", files.file_list, "files"),
    Page(Menu.ACCOUNT, "Teams", "teams/", teams.team_list, "teams"),
    Page(Menu.ACCOUNT, "API tokens", "tokens/", tokens.token_list, "tokens"),
    Page(Menu.ACCOUNT, "Settings", "settings/", preferences.preferences, "preferences"),
    Page(Menu.ADMINISTRATION, "Users", "users/", people.user_list, "users"),
    Page(Menu.ADMINISTRATION, "Audit", "audit/", audit.audit_list, "audit"),
    Page(Menu.ADMINISTRATION, "Past executions", "history/", history.history, "history"),
    Page(Menu.ADMINISTRATION, "Models and GPUs", "catalogue/", catalogue.page, "catalogue"),
    Page(Menu.ADMINISTRATION, "Simulations", "simulations/", simulations.simulation_list, "simulations"),
    Page(Menu.ADMINISTRATION, "Storage", "storage/", storage.storage, "storage"),
    Page(Menu.ADMINISTRATION, "Scheduling policy", "policy/", policy.policy, "policy"),
)


def context(_request: HttpRequest) -> dict[str, Any]:
    """The pages of each menu, and the full disk if it is, for every template."""
    now = disk.disk()
    return {
        "navigation": {str(menu): [page for page in PAGES if page.menu is menu] for menu in Menu},
        "full_disk": now.trouble if now.is_full else "",
    }
