"""Step metrics on their way: from a node's report into a row, and from there to programs and charts."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.events.models import Event
from scheduler.models import Attempt, Metric
from tests.harness import world
from tests.harness.fake_node import FakeNode, step
from trainer.protocol import ClaimOrder
from trainer.step_metrics import STEP_METRICS

pytestmark = pytest.mark.django_db
CORE = ("loss", "eval_loss", "tokens_per_second", "memory_bytes", "learning_rate")


@pytest.fixture
def order(node: FakeNode) -> ClaimOrder:
    world.placed_job(node)
    return node.take_up()


def metrics() -> list[dict[str, Any]]:
    job = Attempt.objects.get().job
    client = Client()
    client.force_login(job.owner)
    return client.get(f"/api/jobs/{job.pk}/metrics/").json()["data"]


def test_every_metric_is_stored_and_told_to_programs(node: FakeNode, order: ClaimOrder) -> None:
    values = {metric.name: 2.5 + n for n, metric in enumerate(STEP_METRICS)} | {"memory_bytes": 10**9}
    steps = {metric.name: values[metric.name] for metric in STEP_METRICS if not metric.evaluation}
    evaluated = {metric.name: values[metric.name] for metric in STEP_METRICS if metric.evaluation}
    node.run(
        order,
        {"kind": "step", "body": {**step(1)["body"], **steps}},
        {"kind": "eval", "body": {"step": 1, **evaluated}},
    )
    row = Metric.objects.get()
    assert {metric.name: row.value(metric) for metric in STEP_METRICS} == values
    line = metrics()[0]
    assert {metric.name: line[metric.public_name] for metric in STEP_METRICS} == values
    assert line.keys() == {"id", "attempt", "step", "at", *(metric.public_name for metric in STEP_METRICS)}


def test_metrics_from_before_the_table_keep_their_columns() -> None:
    assert {metric.column for metric in STEP_METRICS if metric.column} == set(CORE)
    assert set(CORE) <= {field.name for field in Metric._meta.fields}


def test_an_older_node_leaves_metrics_out_and_a_newer_one_adds_some(
    node: FakeNode, order: ClaimOrder
) -> None:
    assert not node.run(order, step(1), step(2, gradient_norm=0.5, of_tomorrow=7.0)).claims[0].error
    assert list(Metric.objects.values_list("others", flat=True)) == [{}, {"gradient_norm": 0.5}]
    assert [line["gradient_norm"] for line in metrics()] == [None, 0.5]


def test_a_step_reported_again_counts_as_it_was_reported_last(node: FakeNode, order: ClaimOrder) -> None:
    node.run(order, step(1, gradient_norm=0.5, learning_rate=1e-4), step(1, learning_rate=2e-4))
    row = Metric.objects.get()
    assert (row.others, row.learning_rate) == ({}, 2e-4)


@pytest.mark.parametrize("value", [-1.0, 1e19, "large", True])
def test_a_value_beyond_its_bounds_is_left_out_by_its_name(
    node: FakeNode, order: ClaimOrder, value: object
) -> None:
    assert not node.run(order, step(1, gradient_norm=value)).claims[0].error
    assert Metric.objects.get().others == {}
    (note,) = Event.objects.filter(type="job.metric_left_out")
    assert "gradient_norm must be a number from 0 to 1e+18" in note.reason
