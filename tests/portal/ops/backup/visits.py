"""An administrator's visit to a portal that was restored."""

from __future__ import annotations

from typing import Any

# Django is set up when these are called.


def read(*addresses: str) -> dict[str, Any]:
    """The content of each address of REST."""
    browser = _administrator()
    answers = {}
    for address in addresses:
        answer = browser.get(address)
        answers[address] = answer.json() if answer.status_code == 200 else answer.status_code
    return answers


def open_pages(tabs_of: str) -> dict[str, int]:
    """The status of every page of the navigation, and of those of each job, node and simulation.

    tabs_of: "all" jobs, or "some", which are the first one of each state
    """
    from portal.accounts.models import Team, User
    from portal.web.jobs.tabs import TABS
    from portal.web.navigation import PAGES
    from scheduler.models import Job, Node, Simulation

    browser = _administrator()
    addresses = ["/", "/jobs/new/", *(f"/{page.address}" for page in PAGES)]
    first_of = {job.state: job.pk for job in Job.objects.order_by("-pk")}
    for job in Job.objects.all():
        page = job.get_absolute_url()
        addresses += [page, f"/jobs/new/?from={job.pk}"]
        if tabs_of == "all" or first_of[job.state] == job.pk:
            addresses += [f"{page}?tab={tab}" for tab in TABS]
    addresses += [simulation.get_absolute_url() for simulation in Simulation.objects.all()]
    addresses += [f"/nodes/{node.pk}/" for node in Node.objects.all()]
    addresses += [f"/users/{user.pk}/" for user in User.objects.all()]
    addresses += [f"/teams/{team.pk}/" for team in Team.objects.all()]
    return {address: browser.get(address).status_code for address in addresses}


def recommend() -> dict[str, Any]:
    """A recommendation for a file that was there, after the stored predictor was asked."""
    from scheduler.models import DatasetFile

    body = {"model": "llama3.1-8b", "training_file": DatasetFile.objects.order_by("pk")[0].pk}
    answer = _administrator().post("/api/recommendations/", body, "application/json")
    content: dict[str, Any] = answer.json()
    return content


def go_on() -> list[str]:
    """Run the loop, housekeeping and the learning over the rows; return what breaks an invariant."""
    from django.core.management import call_command

    from scheduler import tasks
    from tests.harness.invariants import violations

    for task in (tasks.run_tick, tasks.run_option_refresh, tasks.run_simulation, tasks.run_sweep):
        task()
    call_command("train_predictor")
    tasks.run_tick()
    return [str(violation) for violation in violations()]


def _administrator() -> Any:
    from django.test import Client

    from portal.accounts.models import User

    browser = Client()
    browser.force_login(User.objects.get(username="admin"))
    return browser
