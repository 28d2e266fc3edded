"""A job that will surely run longer than promised says so, with both durations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from portal.web.templatetags.portal_format import duration
from tests.portal.figures.by_hand import ByHand
from tests.portal.figures.pages import plain
from tests.portal.figures.story import Story

pytestmark = pytest.mark.django_db


def test_later_than_promised(tell: Callable[..., Story], browser: Client) -> None:
    story = tell("starting")
    path = f"/jobs/{story.job.pk}/live/"
    assert 'id="late"' not in browser.get(path).content.decode()
    attempt = story.job.attempts.get()
    promise = attempt.promised.duration_s
    story.train(1, 8, 10, slower=1000 * (promise.high or 0.0))
    story.job.refresh_from_db()
    told, message = browser.get(path).content.decode(), ByHand(story)
    assert message.time_left_s is not None
    in_all = message.duration_s + message.time_left_s
    assert in_all > (promise.high or 0.0)
    said = plain(told[told.index('id="late"') :].split("</div>")[0].split(">", 1)[1])
    assert said.startswith(f"Later than promised. It should take about {duration(in_all)} in all (")
    assert f"promised for this placement were {duration(promise.value)} (" in said
