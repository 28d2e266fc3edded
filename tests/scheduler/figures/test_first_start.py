"""A job's first start: when it first had its GPUs and made ready; it stays whatever comes after."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.clock import database_now
from portal.events.types import EventType
from scheduler.loop.tick import tick
from scheduler.models import Job, StartForecast
from scheduler.selectors.figures.start_forecasts import judged_starts, start_promise
from scheduler.services.jobs.transitions import note_job
from scheduler.services.jobs.verbs import pause_job, resume_job
from tests.harness import world
from tests.harness.fake_node import result

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("trained", [True, False])
def test_a_pause_does_not_change_the_first_start(*, trained: bool) -> None:
    node = world.fake_node(slots=1)
    job = world.placed_job(node)
    order = node.take_up()
    if trained:
        node.run(order)
    job.refresh_from_db()
    first = job.first_started_at
    assert first is not None, "start-up is no waiting"
    pause_job(job=job, actor=job.owner, now=database_now())
    node.end(order, "stopped", result())
    job.refresh_from_db()
    resume_job(job=job, actor=job.owner, now=database_now())
    assert tick().started == 1
    node.run(node.take_up())
    job.refresh_from_db()
    assert (job.state, job.first_started_at) == ("running", first)


@pytest.mark.parametrize("kind", ["", "job.held"])
def test_a_start_is_judged_as_predictions_does(kind: str) -> None:
    now = database_now()
    job = world.job(world.user())
    StartForecast.objects.create(
        job=job, first=True, policy="fifo", plays=1, made_at=now, start_at=now + timedelta(seconds=60),
        start_low=now + timedelta(seconds=30), start_high=now + timedelta(seconds=90),
    )  # fmt: skip
    if kind:
        note_job(job=job, event=EventType(kind), now=now + timedelta(seconds=10))
    Job.objects.filter(pk=job.pk).update(first_started_at=now + timedelta(seconds=45))
    promise = start_promise(job)
    assert promise is not None
    assert promise.inside is (None if kind else True)
    assert judged_starts().exists() is not bool(kind)
