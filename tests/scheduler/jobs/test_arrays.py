"""An array is cancelled as a whole: those that wait together, the others one by one."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.clock import database_now
from portal.events.models import Event
from scheduler.loop.tick import tick
from scheduler.models import Job, JobArray
from scheduler.services.jobs.arrays import Cancelled, cancel_array, submit_array
from scheduler.services.jobs.verbs import cancel_job, pause_job
from tests.harness import world
from tests.harness.invariants import assert_sound
from tests.scheduler.loop.crashing import dying

pytestmark = pytest.mark.django_db


def array_of(jobs: int, owner: User | None = None) -> JobArray:
    owner = owner or world.user()
    return submit_array(
        owner=owner,
        values=[{"seed": number} for number in range(jobs)],
        now=database_now(),
        model="builtin/tiny-llama",
        training_file=world.data_file(owner),
    )


def test_waiting_paused_and_running_ones_are_cancelled_and_counted() -> None:
    node = world.fake_node(slots=2)
    array = array_of(5)
    assert tick().started == 2
    order = node.take_up()
    node.run(order)
    pause_job(job=array.jobs.filter(state="queued").latest("submitted_at"), actor=None, now=database_now())
    assert cancel_array(array=array, actor=array.owner, now=database_now()) == Cancelled(3, 2)
    assert sorted(array.jobs.values_list("state", flat=True)) == ["cancelled"] * 3 + ["stopping"] * 2
    assert cancel_array(array=array, actor=array.owner, now=database_now()) == Cancelled(0, 0)
    node.end(order, "stopped")
    assert_sound()


def test_a_member_ends_as_a_job_that_is_cancelled_alone() -> None:
    array = array_of(2)
    alone = world.job(owner=array.owner)
    for job in [*array.jobs.all(), alone]:
        pause_job(job=job, actor=None, now=database_now())
    now = database_now()
    cancel_array(array=array, actor=array.owner, now=now)
    cancel_job(job=alone, actor=array.owner, now=now, reason=f"The array {array.pk} was cancelled.")
    columns = ("state", "stop_for", "version", "fence", "state_since", "shown_since", "ended_at", "wait_code")
    same = Job.objects.values_list(*columns)
    assert set(same.filter(array=array)) == {same.get(pk=alone.pk)}
    events = Event.objects.filter(number=3).values_list(
        "type", "old", "new", "stop_for", "fence", "reason", "data__isnull", "actor", "at"
    )
    assert set(events.filter(subject__in=array.jobs.values("pk"))) == {events.get(subject=alone.pk)}


def test_the_time_in_the_queue_is_counted() -> None:
    array = array_of(2)
    now = database_now()
    expected = [(now - job.state_since).total_seconds() for job in array.jobs.order_by("pk")]
    cancel_array(array=array, actor=None, now=now)
    waited = array.jobs.order_by("pk").values_list("waited_s", flat=True)
    assert list(waited) == pytest.approx(expected, abs=0.002)


def test_the_number_of_queries_does_not_grow_with_the_jobs() -> None:
    def queries(jobs: int) -> int:
        array = array_of(jobs)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert cancel_array(array=array, actor=None, now=database_now()).waiting == jobs
        return len(captured)

    assert queries(2) == queries(80) <= 8


def test_it_dies_before_or_after_the_waiting_ones() -> None:
    array = array_of(4)
    with dying(1) as death:
        cancel_array(array=array, actor=None, now=database_now())
    assert death.struck
    states: Any = set(array.jobs.values_list("state", flat=True))
    assert states == {"cancelled"}
    assert_sound()
