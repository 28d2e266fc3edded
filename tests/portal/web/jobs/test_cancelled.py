"""The page of a cancelled job says by whom it was cancelled, and why."""

from __future__ import annotations

from typing import Any

from django.test import Client

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.services.jobs.arrays import cancel_array, submit_array
from scheduler.services.jobs.dependencies import After
from scheduler.services.jobs.verbs import cancel_job
from tests.harness import world


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
        said = f"<strong>Cancelled</strong> by ada: The array {array.pk} was cancelled."
        assert said in browser.get(f"/jobs/{job.pk}/").content.decode()
