"""When a job must run on without interruption: by its measured pace, not by its promise."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.clock import database_now
from scheduler.selectors.markets.job_market import latest_start
from tests.harness import world
from tests.harness.fake_node import step

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
STEPS, STEP_S = 8, 60.0


def test_a_job_that_is_slower_than_promised_has_to_switch_earlier() -> None:
    node, deadline = world.fake_node(), database_now() + timedelta(hours=10)
    job = world.placed_job(node, deadline_at=deadline)
    by_promise = latest_start(job, [], database_now())
    assert by_promise
    assert deadline - by_promise < timedelta(minutes=2)
    order = node.take_up() if not node.orders else next(iter(node.orders.values()))
    for number in (1, 2, 3):
        node.run(order, step(number, total_steps=STEPS, step_s=STEP_S))
    job.refresh_from_db()
    (attempt,) = job.attempts.all()
    running = latest_start(job, [attempt], database_now())
    attempt.ended_at = database_now()  # it waits, and starts again from the step that it reached
    waiting = latest_start(job, [attempt], database_now())
    assert running
    assert waiting
    left_s = (STEPS - 3) * STEP_S
    for found in (running, waiting):
        assert timedelta(seconds=0.8 * left_s) < deadline - found < timedelta(seconds=3 * left_s)
    assert waiting < running  # by its start-up
