"""A step metric that was added by its checklist is kept, told, drawn and written into docs."""

from __future__ import annotations

import pytest
from django.test import Client

from scheduler.models import Job
from tests.generated_docs import TRAINING, with_step_metrics
from tests.harness import world
from tests.harness.fake_node import step
from tests.portal.access import table


@pytest.fixture
def client(db: None) -> Client:
    node = world.fake_node()
    job = world.placed_job(node)
    order = node.take_up()
    node.run(order, step(1), step(2, padding=0.25), step(3, padding=0.5))
    node.run(order, step(4, padding=1.5e19))
    assert "padding must be a number from 0 to 1e+18" in job.events.get(type="job.metric_left_out").reason
    client = Client()
    client.force_login(job.owner)
    return client


def test_programs_get_it(client: Client) -> None:
    lines = client.get(f"/api/jobs/{Job.objects.get().pk}/metrics/").json()["data"]
    assert [line["padding"] for line in lines] == [None, 0.25, 0.5, None]


def test_people_see_its_chart(client: Client) -> None:
    job = Job.objects.get()
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert '<h2 class="h5">Padding</h2>' in page
    assert f'data-chart="/jobs/{job.pk}/charts/padding/"' in page
    chart = client.get(f"/jobs/{job.pk}/charts/padding/").json()
    assert (chart["data"][0]["x"], chart["data"][0]["y"]) == ([2, 3], [0.25, 0.5])
    assert chart["summary"] == "Padding 0.375 in the median of its reports, between 0.25 and 0.5."


def test_its_chart_is_for_those_who_see_the_job() -> None:
    row = next(row for row in table.read() if row.address == "/jobs/{job}/charts/padding/")
    assert row.expected["stranger"] == "404"


def test_its_row_can_be_written_into_docs() -> None:
    row = "| `padding` | `padding` | | padding: share of the tokens computed that are padding |"
    assert row in with_step_metrics(TRAINING.read_text())
