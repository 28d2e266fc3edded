"""Promised against actual: which promises a run can keep or break."""

from __future__ import annotations

import pytest

from portal.accounts.models import User
from scheduler.models import Job
from scheduler.selectors.job_outcome import PredictedAndActual, compare
from tests.harness import world
from tests.harness.fake_node import result
from tests.knowledge.conftest import promised

PROMISE = promised(100.0, 50.0, 200.0)


def compared_after(job: Job) -> dict[str, PredictedAndActual]:
    return {line.name: line for line in compare(PROMISE, job.attempts.get())}


@pytest.mark.parametrize("outcome", ["succeeded", "error"])
def test_only_a_whole_run_is_judged_by_its_length(outcome: str, person: User) -> None:
    node = world.fake_node()
    job = world.placed_job(node, owner=person)
    node.end(node.take_up(), outcome, result(tokens_per_s=150.0))
    lines = compared_after(job)
    assert lines["tokens_per_second"].inside is True
    assert lines["duration_s"].actual is not None
    assert lines["duration_s"].inside is (False if outcome == "succeeded" else None)
    assert (lines["cost"].inside is None) is (outcome != "succeeded")


def test_nothing_is_judged_before_the_end(person: User) -> None:
    job = world.placed_job(world.fake_node(), owner=person)
    assert {line.inside for line in compare(PROMISE, job.attempts.get())} == {None}
    assert {line.actual for line in compare(PROMISE, None)} == {None}
