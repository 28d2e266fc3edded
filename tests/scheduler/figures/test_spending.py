"""Use and cost of jobs in a period: the same sums however they are grouped, on the page and over REST."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from portal.accounts.models import Membership, Team
from portal.clock import database_now
from scheduler.models import Allocation, Job, Node, NodePrice
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.analysis.spending import visible_spending
from scheduler.selectors.figures.cost import job_costs
from scheduler.states import NodeState
from tests.harness import world
from tests.harness.fake_node import result

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = Period(NOON - 12 * HOUR, NOON + 12 * HOUR)
NOW = NOON + 12 * HOUR


def ended_job(price: float, *, team: Team | None = None) -> Job:
    """A job on a node of its own that held one GPU from noon for two hours."""
    node = world.fake_node(slots=1)
    if price:
        world.price_node(node, price)
    job = world.placed_job(node)
    Job.objects.filter(pk=job.pk).update(team=team)
    node.end(node.take_up(), "succeeded", result())
    Allocation.objects.filter(claim__attempt__job=job).update(allocated_at=NOON, released_at=NOON + 2 * HOUR)
    NodePrice.objects.update(since=NOON)
    Node.objects.filter(pk=node.node_id).update(state=NodeState.DRAINED)  # the next job has one of its own
    return job


def test_teams_nodes_and_jobs_add_up_to_the_same() -> None:
    team = Team.objects.create(name="Vision")
    jobs = [ended_job(2.0, team=team), ended_job(0.5), ended_job(0.0, team=team)]
    found = visible_spending(world.admin(), DAY, NOW)
    assert [(line.name, line.jobs, line.gpu_s) for line in found.by_team] == [
        ("Vision", 2, 4 * 3600.0),
        ("", 1, 2 * 3600.0),
    ]
    assert sorted(line.name for line in found.by_person) == sorted(job.owner.username for job in jobs)
    assert sum(line.gpu_s for line in found.by_person) == 6 * 3600.0
    costs = [line.cost.amount if line.cost else None for line in found.by_node]
    assert costs == [4.0, 1.0, None], "the node without a price has no cost, rather than one of 0"
    assert found.total.cost is not None
    assert found.total.cost.amount == pytest.approx(
        sum(spent.amount for spent in job_costs(jobs, NOON + 12 * HOUR).values())
    )
    assert found.total.gpu_s == sum(line.gpu_s for line in found.by_node) == 6 * 3600.0


def test_a_gpu_counts_for_its_part_within_the_period() -> None:
    ended_job(2.0)
    first, second = (
        visible_spending(world.admin(), Period(start, end), NOW)
        for start, end in ((NOON - HOUR, NOON + HOUR / 2), (NOON + HOUR / 2, NOON + 9 * HOUR))
    )
    assert (first.total.gpu_s, second.total.gpu_s) == (1800.0, 5400.0)
    assert (first.total.cost and first.total.cost.amount) == pytest.approx(1.0)
    assert (second.total.cost and second.total.cost.amount) == pytest.approx(3.0)
    assert visible_spending(world.admin(), Period(NOON + 3 * HOUR, NOON + 4 * HOUR), NOW).total.jobs == 0


def test_a_running_job_counts_up_to_now_and_not_to_the_end_of_the_period() -> None:
    ended_job(2.0)
    Allocation.objects.update(released_at=None)
    now = NOON + HOUR
    found = visible_spending(world.admin(), DAY, now)
    assert found.total.gpu_s == 3600.0
    assert (found.total.cost and found.total.cost.amount) == pytest.approx(2.0)
    assert visible_spending(world.admin(), DAY, now + HOUR).total.gpu_s == 7200.0
    assert visible_spending(world.admin(), DAY, NOON - HOUR).total.jobs == 0, "it holds nothing yet"


def test_people_see_what_their_own_and_their_teams_jobs_used() -> None:
    team, member = Team.objects.create(name="Vision"), world.user()
    Membership.objects.create(team=team, user=member)
    ended_job(2.0, team=team)
    ended_job(3.0)
    assert [line.name for line in visible_spending(member, DAY, NOW).by_team] == ["Vision"]
    assert len(visible_spending(member, DAY, NOW).by_person) == 1
    assert visible_spending(world.user(), DAY, NOW).total.jobs == 0


def test_page_and_rest_tell_the_same(admin_client: Client) -> None:
    team = Team.objects.create(name="Vision")
    ended_job(2.0, team=team)
    query = {"since": (NOON - HOUR).isoformat(), "until": (NOON + 9 * HOUR).isoformat()}
    answer = admin_client.get("/api/spending/", query).json()
    (line,), (person,) = answer["by_team"], answer["by_person"]
    assert (line["id"], person["id"][:5]) == (f"team-{team.pk}", "user-")
    assert (line["name"], line["jobs"], line["gpu_s"], line["cost"]) == ("Vision", 1, 7200.0, 4.0)
    assert answer["total"]["cost"] == 4.0
    page = admin_client.get("/analytics/spending/?from=2026-11-01&to=2026-11-01").content.decode()
    assert "Vision" in page
    assert "4.00" in page or ">4" in page
    empty = admin_client.get("/analytics/spending/?from=2001-01-01&to=2001-01-02").content.decode()
    assert "No job held a GPU" in empty


def test_a_period_that_ends_before_it_begins_is_refused(admin_client: Client) -> None:
    answer = admin_client.get(
        "/api/spending/", {"since": database_now().isoformat(), "until": NOON.isoformat()}
    )
    assert answer.status_code in (400, 422)
    assert "since" in answer.content.decode()
