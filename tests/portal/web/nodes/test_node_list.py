"""The list of nodes, filtered by its address and divided into pages.

It takes the same few queries and bytes at any size.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmarks.portal.crowd import fill
from portal.accounts.models import User
from scheduler.models import Node
from tests.harness import world


@pytest.fixture
def crowd(person: User) -> None:
    """60 nodes of three GPU models, one of them lost."""
    fill(jobs=0, nodes=60, executions=0, people=0, now=timezone.now())
    Node.objects.filter(name="node-0007").update(state="lost", reason="Silent for more than 90 s.")


def names(client: Client, query: str = "") -> list[str]:
    return [node.name for node in client.get(f"/nodes/?{query}").context["page"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=lost", ["node-0007"]),
        ("q=NODE-0012", ["node-0012"]),
        ("gpu=L40S&q=node-000", ["node-0002", "node-0005", "node-0008"]),
        ("gpu=L40S&state=lost", []),
    ],
)
def test_the_filters_live_in_the_address(browser: Client, crowd: None, query: str, found: list[str]) -> None:
    assert names(browser, query) == found


def test_pages_follow_one_another_and_keep_the_filters(browser: Client, crowd: None) -> None:
    pages = [names(browser, f"page={number}") for number in (1, 2, 3)]
    assert [len(page) for page in pages] == [20, 20, 20]
    every = [name for page in pages for name in page]
    assert sorted(set(every)) == every
    second = browser.get("/nodes/?q=node&state=ready&page=2").content.decode()
    assert "?q=node&amp;state=ready&amp;page=3" in second
    assert "?q=node&amp;state=ready&amp;page=1" in second


def test_the_live_fragment_is_the_shown_page_alone(browser: Client, crowd: None) -> None:
    page = browser.get("/nodes/?page=2").content.decode()
    assert 'hx-get="/nodes/?page=2"' in page
    part = browser.get("/nodes/?page=2", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert ("node-0020" in part, "node-0001" in part) == (True, False)


@pytest.mark.parametrize("query", ["state=asleep", "gpu=none", "q=" + "x" * 201, "q=a%00b"])
def test_a_wrong_filter_is_told_in_words(browser: Client, crowd: None, query: str) -> None:
    answer = browser.get(f"/nodes/?{query}")
    assert answer.status_code == 400
    assert b"invalid-feedback" in answer.content


def test_nothing_and_nothing_that_matches_are_told_apart(browser: Client, person: User) -> None:
    assert b"No nodes yet" in browser.get("/nodes/").content
    world.fake_node()
    assert b"No node matches" in browser.get("/nodes/?q=elsewhere").content


def test_the_cluster_is_summed_up_above_any_page(browser: Client, crowd: None) -> None:
    shown = browser.get("/nodes/?q=node-0001").content.decode()
    assert "0 of 80 allocated; 76 on ready nodes" in shown
    assert "lost 1" in shown


def test_a_list_costs_the_same_at_any_size(browser: Client, person: User) -> None:
    costs = []
    browser.get("/nodes/")  # the first page of a process looks whether the data are simulated
    for nodes in (20, 200):
        Node.objects.all().delete()
        fill(jobs=0, nodes=nodes, executions=0, people=0, now=timezone.now())
        with CaptureQueriesContext(connection) as queries:
            content = browser.get("/nodes/").content
        costs.append(len(queries))
        assert len(content) < 100_000
    assert costs[0] == costs[1] <= 12


def test_a_node_of_very_many_slots_does_not_fill_the_list(browser: Client, person: User) -> None:
    node = world.fake_node(slots=100)
    shown = browser.get("/nodes/").content.decode()
    assert "all 100" in shown
    assert shown.count("cpu <span") == 16
    assert browser.get(f"/nodes/{node.node_id}/").content.decode().count("Utilisation of GPU") == 0
