"""A job is warned of once for each cause, until the cause is over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.clock import database_now
from portal.events.models import Event
from scheduler.core.job_warnings import WARNINGS, Risk
from scheduler.loop.sweeps import sweep
from scheduler.models import Attempt, Job
from scheduler.services.nodes.price import set_price
from tests.harness import fake_node, world
from tests.harness.fake_node import FakeNode, step
from trainer.protocol import ClaimOrder

pytestmark = pytest.mark.django_db
WARNED = ("deadline_at_risk", "warning")
START = {"kind": "start", "body": {"steps_total": 100, "rows": 20, "row_tokens": 600}}


def steps(first: int, last: int, step_s: float) -> list[dict[str, Any]]:
    reports = [step(number) for number in range(first, last + 1)]
    return [{**report, "body": {**report["body"], "step_s": step_s}} for report in reports]


def started(node: FakeNode, **limits: Any) -> tuple[Job, ClaimOrder]:
    """A job with limits that it can keep by its promise, whatever was stated."""
    job = world.placed_job(node)
    Job.objects.filter(pk=job.pk).update(**limits)
    order = node.take_up()
    node.run(order, START)
    return job, order


def events(*kinds: str) -> list[str]:
    return [
        event.data["code"]
        for event in Event.objects.filter(type__in=[f"job.{kind}" for kind in kinds]).order_by("number")
    ]


def codes() -> list[str]:
    return [warning["code"] for warning in Attempt.objects.get().warnings]


def test_a_job_that_will_be_late_says_so_once_and_says_when_that_is_over(node: FakeNode) -> None:
    _, order = started(node, deadline_at=database_now() + timedelta(seconds=400))
    node.run(order, *steps(1, 5, step_s=10.0))
    assert (codes(), events(*WARNED)) == (["late"], ["late"])
    event = Event.objects.get(type="job.deadline_at_risk")
    assert event.reason == f"{WARNINGS[Risk.LATE].text} {WARNINGS[Risk.LATE].remedy}"
    assert event.data["chance"] >= 0.9
    since = Attempt.objects.get().warnings[0]["since"]
    node.run(order, *steps(6, 10, step_s=10.0))
    assert events(*WARNED) == ["late"]
    assert Attempt.objects.get().warnings[0]["since"] == since
    node.run(order, *steps(11, 40, step_s=0.5))
    assert (codes(), events("warning_over")) == ([], ["late"])


def test_a_job_in_time_is_not_warned_of(node: FakeNode) -> None:
    _, order = started(node, deadline_at=database_now() + timedelta(hours=3))
    node.run(order, *steps(1, 20, step_s=10.0))
    assert (codes(), events(*WARNED)) == ([], [])


def test_a_job_that_will_cost_more_than_its_budget_says_so(node: FakeNode) -> None:
    here = world.Node.objects.get()
    set_price(node=here, price=3600.0, seen=0.0, actor=world.admin(), now=database_now())
    _, order = started(node, budget=100.0)
    node.run(order, *steps(1, 5, step_s=10.0))
    assert (codes(), events(*WARNED)) == (["over-budget"], ["over-budget"])


def test_a_job_that_falls_silent_becomes_late(node: FakeNode) -> None:
    job, order = started(node, deadline_at=database_now() + timedelta(seconds=800))
    node.run(order, *steps(1, 50, step_s=10.0))
    assert codes() == []
    sweep(database_now())
    assert codes() == []
    sweep(database_now() + timedelta(seconds=700))
    assert (codes(), events(*WARNED)) == (["late"], ["late"])
    sweep(database_now() + timedelta(seconds=760))
    assert events(*WARNED) == ["late"]
    job.refresh_from_db()
    assert job.version == Event.objects.filter(subject=job.pk).count()


def test_a_job_that_stops_is_not_warned_of(node: FakeNode) -> None:
    job, order = started(node, deadline_at=database_now() + timedelta(seconds=400))
    Job.objects.filter(pk=job.pk).update(state="stopping", stop_for="pause")
    node.run(order, *steps(1, 5, step_s=10.0))
    assert codes() == []


def grows(node: FakeNode, order: ClaimOrder, *, first: int, last: int, each: int) -> None:
    """Steps whose peaks rise by so many bytes each, up to 24 GiB less 40 times as many."""
    for number in range(first, last + 1):
        report = fake_node.step(number)
        peak = (24 << 30) - (60 - number) * each
        node.run(order, {**report, "body": {**report["body"], "step_s": 1.0, "memory_bytes": peak}})


def test_a_job_whose_memory_keeps_growing_is_warned_of(db: None) -> None:
    node = world.fake_node(slots=1, model="L4", memory_bytes=24 << 30)
    _, order = started(node)
    grows(node, order, first=1, last=30, each=50 << 20)
    sweep(database_now())
    assert (codes(), events(*WARNED)) == (["out-of-memory"], ["out-of-memory"])
    node.run(order, *steps(31, 80, step_s=1.0))
    assert codes() == ["out-of-memory"]
    sweep(database_now())
    assert (codes(), events("warning_over")) == ([], ["out-of-memory"])


def test_slots_of_a_cpu_have_no_memory_of_their_own(node: FakeNode) -> None:
    _, order = started(node)
    grows(node, order, first=1, last=30, each=50 << 20)
    sweep(database_now())
    assert codes() == []
