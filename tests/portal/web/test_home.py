"""The start page through the test client."""

from __future__ import annotations

from datetime import timedelta

from django.test import Client
from django.utils import timezone

from portal.accounts.models import User
from portal.accounts.visits import SAME_VISIT
from portal.events.services import give_positions
from scheduler.loop.tick import tick
from tests.harness import fake_node, world


def page(client: Client) -> str:
    return client.get("/").content.decode()


def went_away(person: User) -> None:
    """As if the person's last look was longer ago than a visit lasts."""
    User.objects.filter(pk=person.pk).update(seen_at=timezone.now() - SAME_VISIT - timedelta(minutes=1))


def test_who_is_new_is_shown_three_steps(browser: Client) -> None:
    shown = page(browser)
    assert "Three steps" in shown
    assert "No node has joined yet" in shown
    assert "Since your last visit" not in shown


def test_my_jobs_and_the_cluster_now(browser: Client, person: User) -> None:
    node = world.fake_node(slots=3)
    world.job(person, name="quick one", params={"number_gpus": 1})
    tick()
    node.run(node.take_up(), fake_node.step(5))
    world.job(name="not mine")
    shown = page(browser)
    assert "Next to finish" in shown
    assert "in about" in shown
    assert "1 of 3 allocated" in shown
    assert "1 job waiting" in shown
    assert "not mine" not in shown
    fragment = browser.get("/", headers={"HX-Request": "true"}).content.decode()
    assert "quick one" in fragment
    assert "<html" not in fragment


def test_who_has_nothing_going_on_is_led_to_earlier_jobs(browser: Client, person: User) -> None:
    job = world.job(person)
    browser.post(f"/jobs/{job.pk}/cancel/")
    assert "Earlier jobs" in page(browser)


def test_what_ended_since_the_last_visit_is_told_until_the_next(browser: Client, person: User) -> None:
    page(browser)
    went_away(person)
    node = world.fake_node(name="new-box")
    world.placed_job(node, owner=person, name="ended meanwhile")
    order = next(iter(node.orders.values()))
    node.run(order, fake_node.step(1))
    node.end(order, "succeeded", fake_node.result())
    give_positions()
    for _ in range(2):  # a reload keeps the news
        shown = page(browser)
        news = shown[shown.index("Since your last visit") :]
        assert "ended meanwhile" in news
        assert "new-box" in news
    went_away(person)
    assert "None of your jobs started or ended" in page(browser)


def test_what_was_committed_late_is_told_at_the_next_visit(browser: Client, person: User) -> None:
    page(browser)
    went_away(person)
    node = world.fake_node()
    world.placed_job(node, owner=person, name="committed late")
    node.end(next(iter(node.orders.values())), "succeeded", fake_node.step(1), fake_node.result())
    assert "None of your jobs started or ended" in page(browser), "as if it was not committed yet"
    give_positions()
    went_away(person)
    shown = page(browser)
    assert "committed late" in shown[shown.index("Since your last visit") :]


def test_what_others_do_is_no_news_of_mine(browser: Client, person: User) -> None:
    page(browser)
    went_away(person)
    world.placed_job(world.fake_node(), name="their job")
    give_positions()
    assert "their job" not in page(browser)
