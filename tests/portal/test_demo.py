"""The demo portal: the same at every hour, with something to see on every page."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.utils import timezone

from portal.accounts.models import User
from portal.demo.journal import SIMULATED
from portal.demo.world import build
from scheduler.models import Job
from scheduler.selectors.jobs import log_text
from scheduler.states import JobState

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.mark.parametrize("hour", [1, 13])
def test_the_hour_does_not_decide_which_jobs_run(hour: int) -> None:
    build(seed=2, jobs=20, password="x", train=False, now=datetime(2026, 3, 29, hour, tzinfo=UTC))
    states = Counter(Job.objects.values_list("state", flat=True))
    assert states == {JobState.RUNNING: 2, JobState.SUCCEEDED: 17, JobState.FAILED: 1}


def test_every_attempt_that_began_has_a_log_that_says_it_is_simulated(client: Client) -> None:
    build(seed=2, jobs=20, password="x", train=False, now=timezone.now())
    client.force_login(User.objects.get(username="admin"))
    for job in Job.objects.filter(state__in=[JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED]):
        page = client.get(f"/jobs/{job.pk}/?tab=log").content.decode()
        assert SIMULATED in log_text(job)[0]
        assert f"step {job.step}/{job.total_steps}  loss" in page
        assert (job.failure_reason or "") in page
