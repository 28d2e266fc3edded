"""Stories told by a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone

from portal import clock
from portal.accounts.models import User
from portal.clock import database_now
from tests.portal.figures.stories import STORIES
from tests.portal.figures.story import Clock, Story

Tell = Callable[..., Story]


@pytest.fixture
def tell(person: User, monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Play a story by its name, up to the moment at which the interfaces are read."""

    def play(name: str, *, priced: bool = True) -> Story:
        standing = Clock(database_now())
        monkeypatch.setattr(clock, "read", standing)
        monkeypatch.setattr(timezone, "now", standing)  # by which pages tell how long ago something was
        story = Story(standing, person, priced)
        STORIES[name](story)
        story.job.refresh_from_db()
        return story

    return play
