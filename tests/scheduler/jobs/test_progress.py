"""The work left of an attempt follows its reports, and the scheduler believes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from knowledge.core.domain.types import Interval
from portal.clock import database_now
from scheduler.loop.snapshot import take_snapshot
from scheduler.models import Attempt, Job
from tests.harness import world
from tests.harness.fake_node import FakeNode, step

pytestmark = pytest.mark.django_db


def reported_step(number: int, step_s: float, **more: Any) -> dict[str, Any]:
    report = step(number)
    return {**report, "body": {**report["body"], "step_s": step_s, **more}}


def left() -> Interval:
    """Of the only attempt, as of its last report."""
    attempt = Attempt.objects.get()
    assert attempt.remaining
    found = attempt.remaining.left(attempt.remaining.heard_at)
    assert found
    return found


START = {"kind": "start", "body": {"steps_total": 100, "rows": 20, "row_tokens": 600}}


def test_an_attempt_begins_with_its_promise(node: FakeNode) -> None:
    world.placed_job(node)
    attempt = Attempt.objects.get()
    assert attempt.remaining
    assert attempt.remaining.heard_at == attempt.created_at.timestamp()
    assert left().value == pytest.approx(attempt.promised.duration_s.value, rel=0.05)


def test_measured_steps_correct_it(node: FakeNode) -> None:
    world.placed_job(node)
    order = node.take_up()
    node.run(order, START)
    for number in range(1, 21):
        node.run(order, reported_step(number, step_s=7.0))
    assert left().value == pytest.approx(80 * 7, rel=0.05)
    node.run(order, reported_step(21, step_s=7.0, saving_s=21 * 0.7))
    assert left().value == pytest.approx(79 * 7.7, rel=0.05)


def test_a_measured_evaluation_takes_the_place_of_the_promised_one(node: FakeNode) -> None:
    owner = world.user()
    world.placed_job(node, owner=owner, validation_file=world.data_file(owner))
    order = node.take_up()
    node.run(order, START, reported_step(1, step_s=7.0))
    work = Attempt.objects.get().remaining.work  # type: ignore[union-attr]
    assert work.evaluations > 1
    before = left().value - work.evaluations * work.evaluation_s
    node.run(order, {"kind": "eval", "body": {"step": 1, "eval_loss": 1.0, "evaluation_s": 30.0}})
    assert left().value == pytest.approx(before + work.evaluations * 30)


def test_an_agent_from_before_says_how_far_it_is(node: FakeNode) -> None:
    world.placed_job(node)
    order = node.take_up()
    node.run(order, START)
    Attempt.objects.update(progress=None)
    node.run(order, step(4))
    assert Attempt.objects.get().remaining.pace.step == 4  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["step_s", "saving_s"])
def test_seconds_that_are_none_are_left_out_of_their_step(node: FakeNode, field: str) -> None:
    world.placed_job(node)
    order = node.take_up()
    assert not node.run(order, reported_step(1, **{"step_s": 1.0, field: -1.0})).claims[0].error
    attempt = Attempt.objects.get()
    assert attempt.metrics.get().step == 1
    assert attempt.remaining is not None
    assert attempt.remaining.pace.saved_s >= 0 <= attempt.remaining.pace.trained_s


def test_the_scheduler_believes_what_was_measured(node: FakeNode) -> None:
    world.placed_job(node)
    order = node.take_up()
    node.run(order, START, *(reported_step(number, step_s=7.0) for number in range(1, 21)))
    now = database_now()
    (running,) = take_snapshot({}, now).running
    assert running.releases_in_s == pytest.approx(80 * 7, rel=0.05)
    later = take_snapshot({}, now + timedelta(hours=1))
    assert later.releases[0].in_s > 79 * 6.5  # a training that is not heard of does nothing


def test_without_measurements_it_believes_the_promise(node: FakeNode) -> None:
    job = world.placed_job(node)
    Attempt.objects.update(progress=None)
    Job.objects.filter(pk=job.pk).update(step=25, total_steps=100)
    (running,) = take_snapshot({}, database_now()).running
    assert running.releases_in_s == pytest.approx(0.75 * running.options[0].duration_s.value)
