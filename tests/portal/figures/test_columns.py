"""The columns of a job agree with its events, also for jobs of earlier releases."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest
from django.apps import apps

from portal.clock import database_now
from scheduler.models import Job
from scheduler.selectors.figures.times import since, waiting_s
from tests.portal.figures.by_hand import ByHand
from tests.portal.figures.story import Story

migration = import_module("scheduler.migrations.0022_shown_since_and_waited")
A_MS = 1e-3  # SQLite counts days, of which its numbers hold some 40 microseconds
NAMES = ("queued", "starting", "resumed and running", "pausing, then cancelled", "succeeded after a pause")


@pytest.mark.django_db
@pytest.mark.parametrize("name", NAMES)
def test_jobs_of_earlier_releases_are_told_by_their_events(tell: Callable[..., Story], name: str) -> None:
    story = tell(name, priced=False)
    before = Job.objects.values("shown_since", "waited_s").get()
    Job.objects.update(shown_since=None, waited_s=0.0)
    migration.from_events(apps, None)
    after, answer = Job.objects.get(), ByHand(story)
    assert after.waited_s == pytest.approx(before["waited_s"], abs=A_MS)
    assert after.shown_since == before["shown_since"] == answer.since
    assert (since(after), waiting_s(after, database_now())) == (
        answer.since,
        pytest.approx(answer.waiting_s, abs=A_MS),
    )
