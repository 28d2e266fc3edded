"""Last in, first out."""

from __future__ import annotations

from scheduler.core.types import Start, Wait
from tests.scheduler.core.clusters import decide, job, node, option


def test_the_newest_job_goes_first() -> None:
    plan = decide("newest", [job("old", option(), at=1), job("new", option(), at=2)], [node("n", 1)])
    assert isinstance(plan["new"], Start)
    assert isinstance(plan["old"], Wait)
