"""The demo portal: the same at every hour, with something to see on every page."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from portal.demo.world import build
from scheduler.models import Job
from scheduler.states import JobState


@pytest.mark.parametrize("hour", [0, 7, 13, 21])
@pytest.mark.django_db
def test_the_hour_does_not_decide_which_jobs_run(hour: int) -> None:
    build(seed=2, jobs=20, password="x", train=False, now=datetime(2026, 3, 29, hour, tzinfo=UTC))
    states = Counter(Job.objects.values_list("state", flat=True))
    assert states == {JobState.RUNNING: 2, JobState.SUCCEEDED: 17, JobState.FAILED: 1}
