"""Promised against actual: which promises a run can keep or break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Interval
from portal.clock import database_now
from scheduler.models import Attempt, Job
from scheduler.selectors.figures.cost import job_costs
from scheduler.selectors.figures.promise import PredictedAndActual, comparison, is_inside
from tests.harness import world
from tests.harness.fake_node import FakeNode, result
from tests.knowledge.conftest import promised

pytestmark = pytest.mark.django_db
PROMISE = promised(100.0, 50.0, 200.0)


def promised_job(node: FakeNode) -> Job:
    job = world.placed_job(node)
    Attempt.objects.update(option=option_json(PROMISE))
    return job


def compared(job: Job) -> dict[str, PredictedAndActual]:
    now, fresh = database_now(), Job.objects.get(pk=job.pk)
    lines = comparison(fresh, job_costs([job], now).get(job.pk), now)
    return {line.name: line for line in lines}


@pytest.mark.parametrize("outcome", ["succeeded", "error"])
def test_only_a_whole_run_is_judged_by_its_length(outcome: str) -> None:
    node = world.fake_node()
    world.price_node(node, 1.0)
    job = promised_job(node)
    node.end(node.take_up(), outcome, result(tokens_per_s=150.0))
    lines = compared(job)
    assert lines["tokens_per_second"].inside is True
    assert lines["duration_s"].actual is not None
    assert lines["duration_s"].inside is (False if outcome == "succeeded" else None)
    assert (lines["cost"].inside is None) is (outcome != "succeeded")


def test_nothing_is_judged_before_the_end() -> None:
    assert {line.inside for line in compared(promised_job(world.fake_node())).values()} == {None}
    assert {line.actual for line in compared(world.job()).values()} == {None}


def test_bounds_are_inside() -> None:
    assert [is_inside(value, 2.0, 3.0) for value in (2.0, 3.0)] == [True, True]
    assert is_inside(1.9, 2.0, 3.0) is False
    assert is_inside(1.9, None, 3.0) is None


def test_a_price_that_came_later_gives_a_cost_that_is_not_judged() -> None:
    node = world.fake_node()
    job = promised_job(node)
    Attempt.objects.update(option=option_json(replace(PROMISE, cost=Interval(0.0, 0.0, 0.0))))
    order = node.take_up()
    assert "cost" not in compared(job)
    world.age_starts(1800, of=job)
    world.price_node(node, 2.0)
    world.age_starts(1800, of=job)
    line = compared(job)["cost"]
    hours = PROMISE.duration_s.value / 3600
    assert (line.value, line.priced_later, line.inside) == (pytest.approx(2.0 * hours), True, None)
    node.end(order, "succeeded", result(tokens_per_s=150.0))
    world.price_node(node, 50.0)
    line = compared(job)["cost"]
    assert (line.value, line.inside) == (pytest.approx(2.0 * hours), None)
    assert line.actual is not None
    assert line.actual > 0
