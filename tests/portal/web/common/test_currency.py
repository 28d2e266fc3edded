"""Amounts of money carry the portal's currency wherever they are shown."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from knowledge.core.domain.wording import money
from portal.accounts.models import User
from portal.web.analysis.simulations import TIMES, USE
from portal.web.charts.pareto import tradeoff
from scheduler.models import DatasetFile, Job, Node, Simulation
from tests.harness import world
from tests.harness.fake_node import FakeNode


@pytest.fixture
def node(settings: LazySettings) -> FakeNode:
    """A node with a price, on a portal that counts in euros."""
    settings.CURRENCY = "EUR"
    made = world.fake_node()
    world.price_node(made, 2.0)
    return made


def text(browser: Client, path: str) -> str:
    return browser.get(path).content.decode()


@pytest.mark.parametrize(
    ("amount", "message"),
    [(1069.4, "1,069 EUR"), (12.345, "12.3 EUR"), (0.042, "0.042 EUR"), (1e-6, "0.000001 EUR"), (0, "0 EUR")],
)
def test_an_amount_comes_with_its_currency(amount: float, message: str) -> None:
    assert money(amount, "EUR") == message


def test_without_a_currency_the_amount_stands_alone() -> None:
    assert money(12.5, "") == "12.5"


def test_pages_of_nodes_tell_prices_in_it(browser: Client, node: FakeNode) -> None:
    pk = Node.objects.get().pk
    assert "2 EUR per GPU hour" in text(browser, "/nodes/")
    page = text(browser, f"/nodes/{pk}/")
    assert "<dd>2 EUR</dd>" in page
    assert "Price per GPU hour: 0 EUR to 2 EUR." in page


def test_the_form_of_a_price_names_it(admin_browser: Client, node: FakeNode) -> None:
    assert "In EUR." in text(admin_browser, f"/nodes/{Node.objects.get().pk}/")


def test_a_new_job_is_told_its_cost_in_it(
    browser: Client, data_file: DatasetFile, node: FakeNode, settings: LazySettings
) -> None:
    assert "In EUR." in text(browser, "/jobs/new/")
    question = {"model": "builtin/tiny-llama", "training_file": data_file.pk, "budget": "0.000001"}
    answer = browser.get("/jobs/new/advice/", {**question, "params-max_steps": "90000"})
    page, figure = answer.content.decode(), answer.context["tradeoff"]
    assert "The budget is 0.000001 EUR; the job may cost" in page
    assert " and costs " in page
    assert "EUR" in figure["summary"]
    assert figure["layout"]["yaxis"]["title"]["text"] == "cost, EUR"
    settings.CURRENCY = ""
    assert tradeoff(answer.context["recommendation"].options)["layout"]["yaxis"]["title"]["text"] == "cost"


def test_a_job_tells_budget_and_cost_in_it(browser: Client, person: User, node: FakeNode) -> None:
    job = world.job(person, budget=12.5)
    page = text(browser, f"/jobs/{job.pk}/")
    assert "<dt>Budget</dt><dd>12.5 EUR</dd>" in page
    assert " EUR" in text(browser, "/jobs/")


def test_programs_are_told_the_currency(
    api: APIClient, person: User, data_file: DatasetFile, node: FakeNode
) -> None:
    job: Job = world.job(person)
    question = {"model": "builtin/tiny-llama", "training_file": data_file.pk}
    reported = [
        api.get(f"/api/jobs/{job.pk}/"),
        api.get(f"/api/nodes/{Node.objects.get().pk}/"),
        api.post("/api/recommendations/", question, format="json"),
    ]
    assert [answer.json()["currency"] for answer in reported] == ["EUR"] * 3


def test_simulated_costs_are_told_in_it(admin_browser: Client, person: User, node: FakeNode) -> None:
    made = Simulation.objects.create(
        policies=["fifo"], cluster="cpu:1x1@2", requested_by=person, state="done", knowledge="performance",
        requested_at=timezone.now(), until=timezone.now(),
        results=[{"policy": "fifo", **{name: 3.5 for name, _, _ in TIMES + USE}}],
    )  # fmt: skip
    page = text(admin_browser, f"/simulations/{made.pk}/")
    assert "2 EUR per GPU hour" in page
    assert "3.5 EUR" in page
