"""The columns of a job agree with its events."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portal.clock import database_now
from scheduler.models import Job
from scheduler.selectors.figures.times import since, waiting_s
from tests.portal.figures.by_hand import ByHand
from tests.portal.figures.story import Story

A_MS = 1e-3  # SQLite counts days, of which its numbers hold some 40 microseconds
NAMES = ("queued", "starting", "resumed and running", "pausing, then cancelled", "succeeded after a pause")


@pytest.mark.django_db
@pytest.mark.parametrize("name", NAMES)
def test_how_long_a_job_waited_is_told_by_its_events(tell: Callable[..., Story], name: str) -> None:
    story = tell(name, priced=False)
    job, answer = Job.objects.get(), ByHand(story)
    assert job.shown_since == answer.since
    assert (since(job), waiting_s(job, database_now())) == (
        answer.since,
        pytest.approx(answer.waiting_s, abs=A_MS),
    )
