"""Plans of jobs with a deadline: beside the form, over REST, with the job."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.models import Job, MarketPlan
from scheduler.selectors.markets.plans import kept_plans
from scheduler.services.markets.plans import keep_plans
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.scheduler.markets import making

pytestmark = pytest.mark.django_db
HOURS = 6


def deadline(hours: float = HOURS) -> datetime:
    return database_now() + timedelta(hours=hours)


def asked(owner: User, by: datetime) -> dict[str, Any]:
    file = world.data_file(owner)
    return {"model": "builtin/tiny-llama", "training_file": file.pk, "deadline_at": by.isoformat()}


def test_three_plans_come_over_rest(api: APIClient, person: User) -> None:
    making.market_node(making.recorded_market())
    answered = api.post("/api/recommendations/plans/", asked(person, deadline()), format="json")
    answer = answered.json()
    assert answered.status_code == 200, answer
    on_demand, safe, portal = answer["plans"]
    assert (answer["market"], answer["note"]) == ("east", "")
    assert [one["plan"] for one in answer["plans"]] == ["on-demand", "greedy", "portal"]
    assert safe["money"] == pytest.approx(on_demand["money"] / 4, rel=0.5)
    assert portal["in_time"] == 1.0
    assert [one["cheapest"] for one in answer["plans"]] == [False, False, True]


@pytest.mark.one_database
def test_plans_need_a_deadline_and_a_market_with_a_past(api: APIClient, person: User) -> None:
    body = asked(person, deadline())
    address = "/api/recommendations/plans/"
    refused = api.post(address, {**body, "deadline_at": None}, format="json")
    assert (refused.status_code, "deadline_at" in refused.content.decode()) == (400, True)
    world.fake_node()
    assert "No market has nodes" in api.post(address, body, format="json").json()["note"]
    making.market_node(making.market())
    bare = api.post(address, body, format="json").json()
    assert [one["plan"] for one in bare["plans"]] == ["on-demand"]
    assert "No spot node has been seen" in bare["note"]
    soon = api.post(address, {**body, "deadline_at": deadline(0.1).isoformat()}, format="json").json()
    assert (soon["plans"], "at once" in soon["note"]) == ([], True)


@pytest.mark.one_database
def test_plans_stand_beside_the_form_with_buttons_that_fill_it(client: Client) -> None:
    making.market_node(making.recorded_market())
    owner = world.user()
    client.force_login(owner)
    by = deadline()
    values = {
        "model": "builtin/tiny-llama", "training_file": world.data_file(owner).pk,
        "deadline_at": f"{by:%Y-%m-%dT%H:%M}",
    }  # fmt: skip
    assert "/jobs/new/plans/" in client.get("/jobs/new/advice/", values).content.decode()
    page = client.get("/jobs/new/plans/", values).content.decode()
    assert "On spot with the deadline" in page
    assert (page.count("data-fill="), page.count(">yardstick<")) == (2, 1)
    assert "&quot;spot&quot;: &quot;yes&quot;" in page
    assert "the plans hold under the policy spot" in page
    assert "<table" not in client.get("/jobs/new/plans/").content.decode()


def test_the_plans_of_the_submission_stay_with_the_job(client: Client) -> None:
    making.market_node(making.recorded_market())
    owner = world.user()
    job = world.job(owner, deadline_at=deadline())
    assert keep_plans(now=database_now()) == 1
    assert keep_plans(now=database_now()) == 0
    found = kept_plans(job.pk)
    assert found
    assert found.followed
    client.force_login(owner)
    shown = client.get(f"/api/jobs/{job.pk}/market/").json()["planned"]
    assert shown["market"] == "east"
    assert shown["plans"][2]["money"] == pytest.approx(found.followed.money)
    page = client.get(f"/jobs/{job.pk}/?tab=market").content.decode()
    assert "Planned at submission" in page
    assert "Planned" in page


@pytest.mark.one_database
def test_a_job_that_no_market_suits_is_not_asked_about_again() -> None:
    making.market(gpu_model="A100-SXM4-80GB")
    world.fake_node()
    job = world.job(deadline_at=deadline())
    assert keep_plans(now=database_now()) == 1
    assert MarketPlan.objects.get(job=job).note == "No market has nodes that suit this job."
    assert keep_plans(now=database_now()) == 0


def test_a_market_that_can_be_asked_gives_options_before_it_has_a_node(settings: Any) -> None:
    settings.PROVISIONERS = {"cloud": ["true"]}
    making.recorded_market(provisioner="cloud")
    job = world.job(deadline_at=deadline())
    assert not Job.objects.get(pk=job.pk).options  # the policy in force asks no market
    choose_policy(name="spot", actor=world.admin(), reason="test", now=database_now())
    planned = world.job(deadline_at=deadline())
    assert {option["config"]["gpu_model"] for option in planned.options} == {"cpu"}
    keep_plans(now=database_now())
    found = kept_plans(planned.pk)
    assert found
    assert len(found.plans) == 3
