"""The list of jobs, and what cancelled ones say, through the test client."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Attempt, Job
from scheduler.services.jobs.arrays import cancel_array, submit_array
from scheduler.services.jobs.dependencies import After
from scheduler.services.jobs.verbs import cancel_job
from tests.harness import fake_node, world


def jobs(client: Client, **filters: str) -> str:
    answer = client.get("/jobs/", filters)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_filters_by_state_name_and_model(browser: Client, person: User) -> None:
    world.job(person, name="summaries")
    world.job(person, name="dialogue", model="builtin/tiny-qwen")
    assert "summaries" in jobs(browser, state="queued")
    assert "No job matches" in jobs(browser, state="failed")
    assert "dialogue" not in jobs(browser, q="SUMM")
    assert "summaries" not in jobs(browser, model="qwen")


def test_the_list_goes_on_with_older_jobs_and_keeps_its_filters(
    browser: Client, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.web.jobs.jobs.PAGE", 2)
    made = [world.job(person, name=f"job number {n}") for n in range(3)]
    first = jobs(browser, state="queued")
    assert f"?state=queued&amp;after={made[1].pk}" in first
    older = jobs(browser, state="queued", after=made[1].pk)
    assert "job number 0" in older
    assert "job number 2" not in older


def test_only_administrators_filter_by_owner_and_see_all(browser: Client, person: User) -> None:
    world.job(world.user("eve"), name="summaries")
    world.job(person, name="dialogue")
    assert "summaries" not in jobs(browser, owner="eve")
    assert "Submitted by" not in jobs(browser)
    User.objects.filter(pk=person.pk).update(is_staff=True)
    shown = jobs(browser, owner="eve")
    assert "summaries" in shown
    assert "dialogue" not in shown


@pytest.mark.parametrize(
    "filters", [{"state": "melted"}, {"q": "x" * 1_000}, {"model": "a\x00b"}, {"after": "9" * 400}]
)
def test_a_wrong_filter_is_told_in_words(browser: Client, filters: dict[str, str]) -> None:
    answer = browser.get("/jobs/", filters)
    assert answer.status_code == 400
    assert b"invalid-feedback" in answer.content


def test_what_has_not_changed_is_not_sent_again(browser: Client, person: User) -> None:
    job = world.job(person)
    for path in ("/jobs/", "/", f"/jobs/{job.pk}/live/", f"/jobs/{job.pk}/tabs/overview/"):
        first = browser.get(path, headers={"HX-Request": "true"})
        again = {"HX-Request": "true", "If-None-Match": first["ETag"]}
        if path != f"/jobs/{job.pk}/tabs/overview/":  # a waiting time grows on
            assert browser.get(path, headers=again).status_code == 304
    browser.post(f"/jobs/{job.pk}/pause/")
    assert browser.get("/jobs/", headers=again).status_code == 200


def test_what_a_job_cost_is_shown_where_nodes_have_a_price(browser: Client, person: User) -> None:
    node = world.fake_node()
    world.price_node(node, 3600.0)
    job = world.placed_job(node, owner=person, params={"number_gpus": 1})
    assert "so far" in jobs(browser)
    order = next(iter(node.orders.values()))
    node.sync(node.say(order, "starting"))
    node.run(order, fake_node.step(1))
    node.end(order, "succeeded", fake_node.result())
    job.refresh_from_db()
    attempt = job.attempts.get()
    assert attempt.ended_at is not None
    assert "so far" not in jobs(browser)


def test_a_new_portal_says_what_to_do_first(browser: Client) -> None:
    assert "No jobs yet" in jobs(browser)


def test_a_job_that_is_warned_of_wears_a_badge_at_no_further_query(
    browser: Client, person: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    node = world.fake_node(slots=3)
    first = world.placed_job(node, owner=person)
    with CaptureQueriesContext(connection) as queries:
        assert "text-bg-warning" not in jobs(browser)
        of_one = len(queries)
    for _ in range(2):
        world.placed_job(node, owner=person)
    Job.objects.update(state="running")
    reported = [{"code": code, "since": "2026-01-01T00:00:00+00:00"} for code in ("late", "over-budget")]
    Attempt.objects.exclude(job=first).update(warnings=reported)
    with django_assert_max_num_queries(of_one):
        shown = jobs(browser)
    assert shown.count("text-bg-warning") == 4
    assert "over budget</span>" in shown


def test_the_jobs_of_an_array_show_their_values_and_its_states_are_renewed(
    browser: Client, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [{"learning_rate": rate, "lora_r": 8} for rate in (1e-4, 2e-4, 5e-4)]
    same: Any = {"model": "builtin/tiny-llama", "training_file": world.data_file(person)}
    array = submit_array(owner=person, values=values, now=database_now(), **same)
    page = jobs(browser, q=array.pk)
    assert [f"Learning rate {rate}" in page for rate in ("0.0001", "0.0002", "0.0005")] == [True] * 3
    assert "LoRA rank 8" not in page
    first = array.jobs.earliest("submitted_at")
    cancel_job(job=first, actor=person, now=database_now())
    address = array.get_absolute_url()
    renewed = browser.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "2 queued, 1 cancelled" in renewed or "1 cancelled, 2 queued" in renewed
    monkeypatch.setattr("portal.web.jobs.jobs.PAGE", 1)
    assert "Learning rate 0.0005" in jobs(browser, q=array.pk), "alone on its page as well"
    assert "Learning rate" not in jobs(browser, q=first.pk)


def test_a_cancelled_job_says_by_whom_and_why(browser: Client, person: User) -> None:
    first = world.job(person, name="pretrain")
    second = world.job(person, after=[After(first)])
    cancel_job(job=first, actor=person, now=database_now())
    tick()
    assert world.state_of(second) == "cancelled"
    assert "<strong>Cancelled</strong> by ada." in browser.get(f"/jobs/{first.pk}/live/").content.decode()
    link = f'<a href="/jobs/{first.pk}/">pretrain</a>'
    why = f"It was to start after {link} had succeeded, which has been cancelled."
    page = browser.get(f"/jobs/{second.pk}/?tab=events").content.decode()
    assert f"<strong>Cancelled</strong>: {why}" in page
    assert page.count(why) == 2, "on top and among the events"


def test_a_cancelled_array_is_the_reason_of_its_jobs(browser: Client, person: User) -> None:
    node = world.fake_node(slots=1)
    same: Any = {"model": "builtin/tiny-llama", "training_file": world.data_file(person)}
    array = submit_array(owner=person, values=[{"seed": 1}, {"seed": 2}], now=database_now(), **same)
    assert tick().started == 1
    cancel_array(array=array, actor=person, now=database_now())
    node.end(node.sync().claims[0], "stopped")
    for job in array.jobs.all():
        assert job.state == "cancelled"
        link = f'<a href="/jobs/?q={array.pk}">{array.pk}</a>'
        said = f"<strong>Cancelled</strong> by ada: The array {link} was cancelled."
        assert said in browser.get(f"/jobs/{job.pk}/").content.decode()
