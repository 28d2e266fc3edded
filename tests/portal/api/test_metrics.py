"""The metrics of a job over REST: in pieces, of one attempt, and thinned."""

from __future__ import annotations

import copy
import random
import uuid
from typing import Any

import pytest
from django.utils import timezone

from portal.api.jobs.curves import kept_rows
from scheduler.models import Attempt, Job, Metric
from tests.harness import world
from tests.portal.conftest import Program, token_client

STEPS = 6000


@pytest.fixture
def job(db: None) -> Job:
    """6,000 steps, of which a second attempt repeats the last ten and goes on; one loss is a spike."""
    job = world.placed_job(world.fake_node())
    first = Attempt.objects.get()
    second = copy.copy(first)
    first.fence, second.fence, second.pk = 1, 2, uuid.uuid4()
    Attempt.objects.filter(pk=first.pk).update(fence=1, ended_at=timezone.now(), outcome="lost")
    second.save(force_insert=True)
    of = lambda attempt, step: Metric(  # noqa: E731
        attempt=attempt, step=step, loss=9.0 if step == 4321 else 1 / step, at=timezone.now(),
        others={"gradient_norm": 50.0 if step == 77 else 1.0},
    )  # fmt: skip
    Metric.objects.bulk_create(of(first, step) for step in range(1, STEPS + 1))
    Metric.objects.bulk_create(of(second, step) for step in range(STEPS - 9, STEPS + 6))
    return job


def ask(job: Job, **query: Any) -> Any:
    return token_client(job.owner).get(f"/api/jobs/{job.pk}/metrics/", query).json()


def test_nothing_ends_silently_and_no_step_is_lost(job: Job) -> None:
    seen, after = [], "0"
    while after is not None:
        page = ask(job, after=after, limit=2500)
        assert page["total"] == STEPS + 15
        seen += page["data"]
        assert page["has_more"] == (page["next"] is not None)
        after = page["next"]
    assert [(row["attempt"], row["step"]) for row in seen] == [
        *((1, step) for step in range(1, STEPS + 1)),
        *((2, step) for step in range(STEPS - 9, STEPS + 6)),
    ]
    assert len(ask(job)["data"]) == 1000
    last = seen[-1]["id"]
    assert ask(job, after=last) == {"data": [], "total": STEPS + 15, "has_more": False, "next": None}
    Metric.objects.filter(pk=seen[10]["id"]).delete()
    assert ask(job, after=seen[10]["id"], limit=1)["data"][0]["id"] == seen[11]["id"]


def test_one_attempt_is_told_alone(job: Job) -> None:
    page = ask(job, attempt=2)
    assert (page["total"], page["data"][0]["step"], page["has_more"]) == (15, STEPS - 9, False)
    assert ask(job, attempt=3)["total"] == 0


def test_thinned_curves_keep_ends_and_extremes(job: Job) -> None:
    page = ask(job, points=100)
    steps = [row["step"] for row in page["data"]]
    assert 50 < len(steps) <= 100
    assert (page["total"], page["has_more"], page["next"]) == (STEPS + 15, False, None)
    assert (steps[0], steps[-1]) == (1, STEPS + 5)
    assert {4321, 77} <= set(steps)  # the highest loss, and the highest gradient norm
    assert [row["id"] for row in page["data"]] == sorted(row["id"] for row in page["data"])
    assert [row["step"] for row in ask(job, points=2)["data"]] == [1, STEPS + 5]
    assert len(ask(job, attempt=2, points=5000)["data"]) == 15


@pytest.mark.parametrize(
    ("query", "field"),
    [({"points": 1}, "points"), ({"points": 5001}, "points"), ({"limit": 5001}, "limit"),
     ({"limit": 0}, "limit"), ({"after": "x"}, "after"), ({"after": 2**63}, "after"),
     ({"attempt": 0}, "attempt"), ({"after_step": 1}, "after_step"), ({"points": 5, "limit": 5}, "limit")],
)  # fmt: skip
def test_what_cannot_be_asked_is_named(api: Program, query: dict[str, Any], field: str) -> None:
    job = world.job(world.user())
    answer = token_client(job.owner).get(f"/api/jobs/{job.pk}/metrics/", query)
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == [field]


@pytest.mark.parametrize("seed", range(5))
def test_thinning_keeps_its_promises_whatever_the_curve(seed: int) -> None:
    draw = random.Random(seed)
    count, points = draw.randint(1, 500), draw.randint(2, 200)
    values = [[None if draw.random() < 0.3 else draw.gauss(0, 1) for _ in range(3)] for _ in range(count)]
    kept = kept_rows(enumerate(values), count=count, metrics=3, points=points)
    assert len(kept) <= points
    assert {0, count - 1} <= kept
    if points >= 8:
        for metric in range(3):
            known = {index: row[metric] for index, row in enumerate(values) if row[metric] is not None}
            for extreme in (min, max):
                assert not known or any(known.get(key) == extreme(known.values()) for key in kept)
