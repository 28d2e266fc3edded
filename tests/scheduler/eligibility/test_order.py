"""Jobs that come after others, or begin later."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.clock import database_now
from scheduler.errors import BadParameters
from scheduler.loop.tick import tick
from scheduler.models import Job, JobArray, JobDependency
from scheduler.services.jobs.arrays import submit_array
from scheduler.services.jobs.dependencies import After
from scheduler.services.jobs.objectives import objective_of
from scheduler.services.jobs.verbs import cancel_job, pause_job, resume_job
from scheduler.states import DependencyKind, JobState, WaitState
from tests.harness import world
from tests.harness.invariants import assert_sound

pytestmark = pytest.mark.django_db
SUCCEEDED, ENDED = DependencyKind


def wait_of(job: Job) -> tuple[str, str]:
    job.refresh_from_db()
    return job.state, job.wait_code


def test_a_job_begins_at_its_time_and_others_go_before_it() -> None:
    world.fake_node()
    later = world.job(begin_at=database_now() + timedelta(hours=1))
    other = world.job(owner=later.owner)
    tick()
    assert wait_of(later) == ("queued", WaitState.BEGIN_TIME)
    assert wait_of(other) == ("assigned", "")
    cancel_job(job=other, actor=None, now=database_now())
    Job.objects.filter(pk=later.pk).update(begin_at=database_now())
    world.fake_node()
    assert tick().started == 1
    assert wait_of(later) == ("assigned", "")


@pytest.mark.parametrize(
    ("kind", "outcome"), [(SUCCEEDED, "succeeded"), (ENDED, "succeeded"), (ENDED, "error")]
)
def test_a_job_starts_once_the_one_before_it_has_ended(kind: DependencyKind, outcome: str) -> None:
    node = world.fake_node(slots=2)
    first = world.job()
    second = world.job(owner=first.owner, after=[After(first, kind)])
    assert tick().started == 1
    assert wait_of(second) == ("queued", WaitState.DEPENDENCY)
    assert first.pk in second.wait_text
    order = node.take_up()
    node.run(order)
    assert tick().started == 0
    node.end(order, outcome)
    assert tick().started == 1
    assert wait_of(second) == ("assigned", "")
    assert_sound()


def test_what_follows_a_job_that_fails_is_cancelled_down_the_line() -> None:
    node = world.fake_node()
    first = world.job()
    second = world.job(owner=first.owner, after=[After(first)])
    third = world.job(owner=first.owner, after=[After(second)])
    anyway = world.job(owner=first.owner, after=[After(third, ENDED)])
    pause_job(job=third, actor=None, now=database_now())
    tick()
    order = node.take_up()
    node.run(order)
    node.end(order, "error")
    tick()
    tick()
    assert wait_of(second) == wait_of(third) == ("cancelled", "")
    assert f"after {first.pk} had succeeded, which has failed" in second.events.last().reason
    assert f"after {second.pk} had succeeded, which has been cancelled" in third.events.last().reason
    tick()
    assert wait_of(anyway) == ("assigned", "")
    assert_sound()


def test_a_long_chain_is_cancelled_as_far_as_a_tick_may(settings: Any) -> None:
    settings.CHANGES_PER_TICK = 5
    chain = [world.job()]
    for _ in range(7):
        chain.append(world.job(owner=chain[0].owner, after=[After(chain[-1])]))
    cancel_job(job=chain[0], actor=None, now=database_now())
    for cancelled in (6, 8):
        tick()
        assert Job.objects.filter(state=JobState.CANCELLED).count() == cancelled
    assert_sound()


def array_of(owner: User, count: int = 2) -> tuple[JobArray, list[Job]]:
    """An array of jobs of this person that differ in their learning rate."""
    values = [{"learning_rate": 1e-4 * (number + 1)} for number in range(count)]
    array = submit_array(
        owner=owner,
        now=database_now(),
        model="builtin/tiny-llama",
        training_file=world.data_file(owner),
        values=values,
    )
    return array, list(array.jobs.order_by("submitted_at"))


@pytest.mark.parametrize("kind", [SUCCEEDED, ENDED])
def test_a_job_starts_once_all_jobs_of_an_array_have_ended(kind: DependencyKind) -> None:
    node = world.fake_node(slots=3)
    array, jobs = array_of(world.user())
    later = world.job(owner=array.owner, after=[After(array, kind)])
    assert tick().started == 2
    assert wait_of(later) == ("queued", WaitState.DEPENDENCY)
    assert later.wait_text == f"It comes after {array.pk}."
    orders = {claim.spec.job: claim for claim in node.sync().claims if claim.spec}
    node.run(orders[jobs[0].pk])
    node.end(orders[jobs[0].pk], "succeeded")
    assert tick().started == 0, "one of them goes on"
    node.run(orders[jobs[1].pk])
    node.end(orders[jobs[1].pk], "succeeded" if kind == SUCCEEDED else "error")
    assert tick().started == 1
    assert wait_of(later) == ("assigned", "")
    assert_sound()


def test_a_job_of_an_array_that_fails_cancels_what_needs_them_all_and_a_paused_one_delays() -> None:
    world.fake_node(slots=2)
    array, (first, second) = array_of(world.user())
    needs = world.job(owner=array.owner, after=[After(array)])
    anyway = world.job(owner=array.owner, after=[After(array, ENDED)])
    pause_job(job=second, actor=None, now=database_now())
    cancel_job(job=first, actor=None, now=database_now())
    tick()
    assert wait_of(needs) == ("cancelled", "")
    text = f"after all jobs of {array.pk} had succeeded, of which {first.pk} has been cancelled."
    assert text in needs.events.last().reason
    assert wait_of(anyway) == ("queued", WaitState.DEPENDENCY)
    assert anyway.wait_text == f"It comes after {array.pk}, {second.pk}."
    second.refresh_from_db()
    cancel_job(job=second, actor=None, now=database_now())
    tick()
    assert wait_of(anyway) == ("assigned", "")


def test_an_array_of_which_a_job_has_failed_is_refused_and_looked_up_once_for_another_array() -> None:
    array, (first, _) = array_of(world.user())
    after = After(array)
    assert after.never is None
    cancel_job(job=first, actor=None, now=database_now())
    with pytest.raises(BadParameters) as refused:
        world.job(owner=array.owner, after=[After(array)])
    assert (
        f"names {array.pk}, of which {first.pk} has already been cancelled" in refused.value.fields["after"]
    )
    with pytest.raises(BadParameters) as refused:
        world.job(owner=array.owner, after=[After(array, ENDED), After(array)])
    assert "an array twice" in refused.value.fields["after"]
    with CaptureQueriesContext(connection) as queries:
        submit_array(
            owner=array.owner, now=database_now(), model="builtin/tiny-llama", after=[After(array, ENDED)],
            training_file=first.training_file, values=[{"seed": seed} for seed in range(20)],
        )  # fmt: skip
    assert sum("scheduler_jobdependency" in query["sql"] for query in queries) == 1
    assert JobDependency.objects.filter(on_array=array).count() == 20


def test_a_pause_only_delays() -> None:
    world.fake_node(slots=2)
    first = world.job()
    second = world.job(owner=first.owner, after=[After(first)])
    pause_job(job=first, actor=None, now=database_now())
    tick()
    assert wait_of(second) == ("queued", WaitState.DEPENDENCY)
    resume_job(job=first, actor=None, now=database_now())
    tick()
    assert wait_of(first) == ("assigned", "")


def test_a_deadline_leaves_the_time_from_the_beginning_on() -> None:
    now, hour = database_now(), timedelta(hours=1)
    job = world.job(begin_at=now + 9 * hour, deadline_at=now + 10 * hour)
    assert objective_of(job, now).deadline_s == pytest.approx(3600)
    assert objective_of(job, now + 9.5 * hour).deadline_s == pytest.approx(1800)


def test_what_could_never_begin_is_refused_and_nothing_is_stored() -> None:
    world.fake_node()
    first, now = world.job(), database_now()
    cancel_job(job=first, actor=None, now=now)
    first.refresh_from_db()
    year, hour = now + timedelta(days=367), now + timedelta(hours=1)
    wrong = [
        ({"begin_at": year}, "begin_at", "within a year"),
        ({"deadline_at": now + 11 * timedelta(days=366)}, "deadline_at", "within ten years"),
        ({"begin_at": hour, "deadline_at": hour}, "begin_at", "before the deadline"),
        ({"after": [After(first)]}, "after", "already been cancelled"),
        ({"after": [After(first, ENDED)] * 2}, "after", "twice"),
        ({"after": [After(Job(pk=str(one)), ENDED) for one in range(101)]}, "after", "at most 100"),
    ]
    for values, field, reported in wrong:
        with pytest.raises(BadParameters) as refused:
            world.job(owner=first.owner, **values)
        assert reported in refused.value.fields[field]
    assert (Job.objects.count(), JobDependency.objects.count()) == (1, 0)
    world.job(owner=first.owner, after=[After(first, ENDED)], begin_at=now)
    assert tick().started == 1
