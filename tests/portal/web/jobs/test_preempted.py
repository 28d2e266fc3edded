"""A job that was stopped for another says so, and the queue shows what is being freed."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.services.jobs.verbs import return_to_queue
from tests.harness import world
from tests.harness.preempting import preempting, running


@pytest.fixture(autouse=True)
def _least_attained(settings: Any) -> None:
    settings.POLICY = "las"


@pytest.mark.parametrize(("policy", "victim_class"), [("las", 0), ("topology", -1)])
def test_the_page_of_a_stopped_job_says_why_and_that_it_goes_on(
    browser: Client, person: User, settings: Any, policy: str, victim_class: int
) -> None:
    settings.POLICY = policy
    turn = preempting(victim_of=person, taker_of=world.user(), victim_class=victim_class)
    page = f"/jobs/{turn.victim.pk}/"
    shown = browser.get(page).content.decode()
    assert "Stopped for another job:" in shown
    assert "it saves its work now" in shown
    assert "another user&#x27;s job, which goes first" in shown or "another user's job, which goes" in shown
    assert turn.taker.pk not in shown
    turn.node.save_checkpoint(turn.order, 7)
    turn.node.end(turn.order, "stopped")
    shown = browser.get(page).content.decode()
    assert "It goes on by itself after step 7" in shown
    assert "done again" not in shown
    Job.objects.filter(pk=turn.victim.pk).update(step=12)  # it had told of later ones
    assert "5 later steps are lost and done again." in browser.get(page).content.decode()
    assert turn.taker.pk not in shown + browser.get(f"{page}?tab=events").content.decode()


def test_a_job_that_an_administrator_stopped_says_so_in_their_words(browser: Client, person: User) -> None:
    node = world.fake_node(slots=1)
    job, order = running(node, person)
    return_to_queue(job=job, actor=world.admin(), now=database_now(), note="It <grows> warm.")
    page = f"/jobs/{job.pk}/"
    said = "Preempted by an administrator: It &lt;grows&gt; warm."
    assert f"Stopped:</strong> it saves its work now and then leaves its GPUs. {said}" in (
        browser.get(page).content.decode()
    )
    node.save_checkpoint(order, 7)
    node.end(order, "stopped")
    shown = browser.get(page).content.decode()
    assert f"{said} It goes on by itself after step 7, its last checkpoint." in shown
    tick()
    node.end(node.take_up(), "lost")
    assert "Stopped" not in browser.get(page).content.decode()


def test_a_cause_that_the_reader_may_see_is_linked(browser: Client, person: User) -> None:
    turn = preempting(victim_of=person, taker_of=person)
    assert f'href="/jobs/{turn.taker.pk}/"' in browser.get(f"/jobs/{turn.victim.pk}/").content.decode()
    waiting = browser.get(f"/jobs/{turn.taker.pk}/").content.decode()
    assert "GPUs are kept for it" in waiting
    assert "Stopped for another job" not in waiting


def test_the_queue_shows_which_gpus_are_being_freed(browser: Client, person: User) -> None:
    turn = preempting(victim_of=person, taker_of=world.user())
    shown = browser.get("/queue/").content.decode()
    assert "GPUs that are being freed" in shown
    assert "for another user's job" in shown
    assert turn.taker.pk not in shown
    turn.node.end(turn.order, "stopped")
