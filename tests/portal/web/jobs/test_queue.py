"""The queue page shows whom the policy would start first; jobs say why they wait."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.loop.tick import tick
from scheduler.models import Job
from scheduler.selectors.cluster.queue import waiting_places
from scheduler.selectors.public_states import WHILE_PAUSED
from scheduler.services.jobs.verbs import pause_job, resume_job
from scheduler.services.policy import choose_policy
from scheduler.states import WaitState
from tests.harness import world

pytestmark = pytest.mark.django_db


def test_waiting_jobs_stand_in_the_order_of_the_policy_and_new_ones_last() -> None:
    choose_policy(name="sjf", actor=world.admin(), reason="test", now=database_now())
    owner = world.user()
    file = world.data_file(owner)
    node = world.fake_node(slots=1)
    world.placed_job(node, owner=owner, training_file=file)
    long, short = (world.job(owner, training_file=file, params={"epochs": epochs}) for epochs in (50, 1))
    tick()
    new = world.job(owner, training_file=file, params={"epochs": 1})
    now = database_now()
    assert [place.job for place in waiting_places(owner, offset=0, limit=5, now=now)] == [short, long, new]
    pages = [waiting_places(owner, offset=offset, limit=1, now=now) for offset in range(4)]
    assert [[(place.position, place.job) for place in page] for page in pages] == [
        [(1, short)], [(2, long)], [(3, new)], [],
    ]  # fmt: skip


def test_a_paused_job_says_so_and_no_longer_why_it_waited(
    api: APIClient, browser: Client, person: User
) -> None:
    job, address = world.job(person), "/api/jobs/{}/"
    tick()
    waits = api.get(address.format(job.pk)).json()["wait"]
    assert waits["code"] == "no-option"
    pause_job(job=job, actor=person, now=database_now())
    paused = api.get(address.format(job.pk)).json()
    assert (paused["state"], paused["wait"]) == ("paused", None)
    assert WHILE_PAUSED in browser.get(f"/jobs/{job.pk}/").content.decode()
    assert (Job.objects.get().wait_code, Job.objects.get().wait_text) == ("", "")
    resume_job(job=job, actor=person, now=database_now())
    assert api.get(address.format(job.pk)).json()["wait"] is None
    tick()
    assert api.get(address.format(job.pk)).json()["wait"] == waits


def test_a_pause_lets_no_job_start_that_needs_options_of_less_memory(person: User) -> None:
    job = world.job(person)
    world.fake_node()
    Job.objects.update(wait_code=WaitState.OPTIONS, wait_text="It ran out of memory.")
    pause_job(job=job, actor=person, now=database_now())
    resume_job(job=job, actor=person, now=database_now())
    assert tick().started == 0
    assert Job.objects.get().wait_code == WaitState.OPTIONS
