"""The demo portal: the same at every hour, with something to see on every page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import DjangoDbBlocker

from portal.accounts.models import User
from portal.ops.demo.build import build
from portal.ops.demo.sample_log import SIMULATED
from scheduler.models import Job
from scheduler.selectors.jobs import log_text
from scheduler.states import JobState
from tests.portal.conftest import rows_of_a_module

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
PAGES = (
    *("/", "/jobs/", "/jobs/new/", "/queue/", "/queue/?lanes=now", "/nodes/"),
    *("/analytics/?range=all", "/analytics/predictions/?range=all"),
)


@pytest.fixture(scope="module", params=[1, pytest.param(13, marks=pytest.mark.slow)])
def demo(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """A portal that was filled at this hour."""
    made_at = datetime(2026, 3, 29, request.param, tzinfo=UTC)
    with rows_of_a_module(django_db_blocker):
        build(seed=2, jobs=20, password="x", train=False, now=made_at)
        yield


def test_the_hour_does_not_decide_which_jobs_run(demo: None) -> None:
    states = Counter(Job.objects.values_list("state", flat=True))
    assert states == {JobState.RUNNING: 3, JobState.SUCCEEDED: 16, JobState.FAILED: 1}


def test_every_page_says_that_it_shows_demo_data(demo: None, client: Client) -> None:
    assert all(job.step for job in Job.objects.filter(state="running")), "running for long, and no step"
    client.force_login(User.objects.get(username="ada"))
    for path in PAGES:
        assert b"Demo data: simulated" in client.get(path).content
    with pytest.raises(CommandError, match="empty database"):
        call_command("demo_data", "--no-train", "--password=x", stdout=StringIO())


def test_every_attempt_that_began_has_a_log_that_says_it_is_simulated(demo: None, client: Client) -> None:
    client.force_login(User.objects.get(username="admin"))
    for job in Job.objects.filter(state__in=[JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED]):
        page = client.get(f"/jobs/{job.pk}/?tab=log").content.decode()
        assert SIMULATED in log_text(job)[0]
        assert f"step {job.step}/{job.total_steps}  loss" in page
        assert (job.failure_reason or "") in page


def test_a_newcomer_reads_why_each_job_runs_where_it_does(demo: None, client: Client) -> None:
    """All of it was decided by the policy as it is, so that it can be made again."""
    client.force_login(User.objects.get(username="admin"))
    for job in Job.objects.all():
        page = client.get(f"/jobs/{job.pk}/?tab=decisions").content.decode()
        assert "Started <span" in page
        assert "What else was weighed" in page
        assert "cannot be read" not in page
    call_command("replay_decision", all=True, stdout=StringIO())
