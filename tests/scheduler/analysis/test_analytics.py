"""Figures over a period.

The database's sums equal those counted by hand.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db.models import F
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.domain.arrays import Array
from portal.accounts.models import Membership, Team, User
from scheduler.models import Allocation, Attempt, Claim, DatasetFile, Gpu, Job
from scheduler.selectors.analysis import analytics
from scheduler.selectors.analysis.histogram import PER_E, SHARES, Histogram, Values, histograms, of
from scheduler.selectors.analysis.period import Period, Seconds, Spans, unit_seconds
from tests.harness import fake_node, world
from tests.harness.environment import examples

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("length", "width_s"),
    [(timedelta(minutes=10), 60), (timedelta(hours=24), 1800), (timedelta(days=7), 6 * 3600)],
)
def test_slices_are_round_and_cover_the_period(length: timedelta, width_s: int) -> None:
    period = Period(NOON, NOON + length)
    assert period.width_s == width_s
    assert period.slices[0] == NOON
    assert period.slices[-1] < period.end <= period.slices[-1] + timedelta(seconds=width_s)


def test_long_periods_are_cut_into_whole_days() -> None:
    assert Period(NOON, NOON + timedelta(days=400)).width_s == 9 * 86_400


@given(st.lists(st.floats(0.2, 1e7), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_quantiles_are_exact_to_half_a_per_cent(values: list[float], share: float) -> None:
    found = of((math.floor(math.log(value) * PER_E), 1) for value in values)
    assert found.quantile(share) == pytest.approx(float(np.quantile(values, share)), rel=0.0051)


LASTED = Seconds(F("ended_at"), F("submitted_at"))
TO_A_MS = 2e-3  # as exact as SQLite's times


def lasting(model: str, seconds: Array) -> None:
    """Ended jobs, as rows alone."""
    owner = User.objects.first() or world.user()
    file = DatasetFile.objects.first() or world.data_file(owner)
    Job.objects.bulk_create(
        Job(
            owner=owner, training_file=file, model=model, version=1, options=[], state_since=NOON,
            submitted_at=NOON - timedelta(seconds=s), ended_at=NOON,
        )
        for s in seconds
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["spread", "alike", "within one bin", "below the least"])
def test_percentiles_of_rows_are_those_of_their_values(db: None, kind: str) -> None:
    rng = np.random.default_rng(7)
    seconds = {
        "spread": rng.lognormal(5, 2, 83),
        "alike": np.repeat(7.5, 83),
        "within one bin": rng.uniform(100, 100.9, 83),
        "below the least": rng.uniform(0, 0.2, 83),
    }[kind]
    lasting("m", seconds)
    found = histograms({"jct": Values(rows=Job.objects.all(), value=LASTED)})["jct", ""]
    assert found.total == 83
    for share in SHARES:
        assert found.quantile(share) == pytest.approx(float(np.quantile(seconds, share)), abs=TO_A_MS)


def test_percentiles_by_group_are_those_of_each_group(db: None) -> None:
    rng = np.random.default_rng(8)
    seconds = {"a": rng.lognormal(3, 1, 21), "b": rng.lognormal(5, 1, 40)}
    for model, values in seconds.items():
        lasting(model, values)
    found = histograms({"jct": Values(rows=Job.objects.all(), value=LASTED, by="model")})
    for model, values in seconds.items():
        exact = [float(np.quantile(values, share)) for share in SHARES]
        assert [found["jct", model].quantile(share) for share in SHARES] == pytest.approx(exact, abs=TO_A_MS)


def test_the_median_of_an_even_number_lies_between_the_two_in_the_middle() -> None:
    found = of((math.floor(math.log(value) * PER_E), 1) for value in (2428, 3043, 4592, 6504))
    assert found.quantile(0.5) == pytest.approx(3818, rel=0.0051)


def test_a_distribution_without_values_has_no_quantiles() -> None:
    assert Histogram().quantile(0.5) is None
    assert Histogram().coarse(10) == []


def test_coarse_bins_keep_every_value_and_show_gaps() -> None:
    bins = of([(0, 2), (7, 1), (30, 4)]).coarse(10)
    assert [count for _, _, count in bins] == [3, 0, 0, 4]
    assert bins[0][0] == 1.0


def held(gpu: Gpu, start: datetime, end: datetime | None, owner: User) -> Allocation:
    """A GPU held by one attempt of a job of `owner`."""
    job = world.job(owner)
    attempt = Attempt.objects.create(
        job=job, fence=1, option={}, created_at=start, ended_at=end, outcome="succeeded" if end else ""
    )
    claim = Claim.objects.create(attempt=attempt, node=gpu.node)
    return Allocation.objects.create(claim=claim, gpu=gpu, allocated_at=start, released_at=end)


@pytest.fixture
def gpus(db: None) -> list[Gpu]:
    node = world.fake_node(slots=2)
    return list(Gpu.objects.filter(node=node.node_id).order_by("index"))


def test_gpu_time_is_split_over_the_slices_it_lies_in(gpus: list[Gpu]) -> None:
    owner = world.user()
    period = Period(NOON, NOON + timedelta(hours=24))  # half-hour slices
    held(gpus[0], NOON - 5 * HOUR, NOON + timedelta(minutes=45), owner)
    held(gpus[1], NOON + timedelta(minutes=10), NOON + timedelta(minutes=20), owner)
    held(gpus[1], NOON - 9 * HOUR, NOON - 8 * HOUR, owner)
    held(gpus[0], NOON + 23.5 * HOUR, None, owner)
    spans_held = Spans(Allocation.objects.all(), "allocated_at", "released_at")
    seconds = unit_seconds({"held": spans_held}, period, period.end)["held"]
    assert seconds[0] == pytest.approx(1800 + 600, abs=0.1)
    assert seconds[1] == pytest.approx(900, abs=0.1)
    assert seconds[2:-1] == pytest.approx([0] * 45, abs=0.1)
    assert seconds[-1] == pytest.approx(1800, abs=0.1)


spans = st.lists(st.tuples(st.integers(-9_000, 90_000), st.integers(1, 40_000)), max_size=6)


@given(spans)
@settings(max_examples=examples(25), deadline=None)
@pytest.mark.django_db
def test_gpu_time_adds_up_to_what_lies_within_the_period(gaps: list[tuple[int, int]]) -> None:
    Allocation.objects.all().delete()
    if not Gpu.objects.exists():
        world.fake_node(slots=6)
    owner = User.objects.first() or world.user()
    period = Period(NOON, NOON + timedelta(hours=20))
    inside = 0.0
    for gpu, (start, length) in zip(Gpu.objects.all(), gaps, strict=False):
        held(gpu, NOON + timedelta(seconds=start), NOON + timedelta(seconds=start + length), owner)
        inside += max(0, min(start + length, 72_000) - max(start, 0))
    spans_held = Spans(Allocation.objects.all(), "allocated_at", "released_at")
    seconds = unit_seconds({"held": spans_held}, period, period.end)["held"]
    assert sum(seconds) == pytest.approx(inside, abs=1)
    assert min(seconds) >= -0.1


def finished(
    owner: User, *, wait: float, run: float, at: datetime, state: str = "succeeded", **more: object
) -> Job:
    """A job that waited and ran for so many seconds and ended at `at`."""
    job = world.job(owner)
    started = at - timedelta(seconds=run)
    Attempt.objects.create(job=job, fence=1, option={}, created_at=started, ended_at=at, outcome="succeeded")
    Job.objects.filter(pk=job.pk).update(
        state=state,
        submitted_at=started - timedelta(seconds=wait),
        waited_s=wait,
        first_started_at=started,
        ended_at=at,
        **more,
    )
    return job


def test_times_and_slowdown_of_jobs_in_the_period(db: None) -> None:
    owner, now = world.user(), timezone.now()
    finished(owner, wait=100, run=100, at=now - HOUR)
    finished(owner, wait=0, run=2, at=now - HOUR)
    finished(owner, wait=5000, run=5000, at=now - 30 * HOUR)
    found = analytics.waiting(owner, Period(now - 24 * HOUR, now))
    assert found.jct_s.total == found.wait_s.total == found.slowdown.total == 2
    assert found.jct_s.quantile(1.0) == pytest.approx(200, rel=0.01)
    assert found.wait_s.quantile(1.0) == pytest.approx(100, rel=0.01)
    assert found.slowdown.quantile(1.0) == pytest.approx(2.0, rel=0.01)
    assert found.slowdown.quantile(0.0) == pytest.approx(1.0, rel=0.01)  # short jobs are not slowed down


def test_ends_and_failures_are_counted_by_kind(db: None) -> None:
    owner, now = world.user(), timezone.now()
    period = Period(now - 24 * HOUR, now)
    finished(owner, wait=1, run=1, at=now - HOUR)
    failed = finished(owner, wait=1, run=1, at=now - HOUR, state="failed", failure_class="resource")
    Attempt.objects.filter(job=failed).update(outcome="oom")
    ended = analytics.ended(owner, period)
    assert {state: sum(counts) for state, counts in ended.by_state.items()} == {
        "succeeded": 1, "failed": 1, "cancelled": 0,
    }  # fmt: skip
    assert analytics.failed_attempts(owner, period) == [("oom", "", "", 1)]
    assert ended.failures == {"resource": 1}


def test_people_see_their_own_and_their_teams_and_administrators_all(db: None) -> None:
    now, ada, ben, eve = timezone.now(), world.user("ada"), world.user("ben"), world.user("eve")
    team = Team.objects.create(name="language")
    for person in (ada, ben):
        Membership.objects.create(team=team, user=person)
    job = finished(ada, wait=1, run=1, at=now - HOUR)
    Job.objects.filter(pk=job.pk).update(team=team)
    period = Period(now - 24 * HOUR, now)
    seen = {p.username: analytics.waiting(p, period).jct_s.total for p in (ada, ben, eve)}
    assert seen == {"ada": 1, "ben": 1, "eve": 0}
    assert analytics.waiting(world.admin(), period).jct_s.total == 1


def test_utilisation_knows_the_cluster_and_the_own_share(db: None) -> None:
    ada, now = world.user("ada"), timezone.now()
    node = world.fake_node(slots=2)
    world.placed_job(node, owner=ada)
    world.placed_job(node)
    period = Period(now - HOUR, timezone.now() + timedelta(seconds=5))
    found = analytics.utilisation(ada, period, period.end)
    assert found.own is not None
    assert sum(found.held) == pytest.approx(2 * sum(found.own), rel=0.3)
    assert sum(found.offered) >= sum(found.held) > 0
    assert analytics.utilisation(world.admin(), period, now).own is None


def test_throughput_is_told_by_gpu_model(db: None) -> None:
    node = world.fake_node(name="box")
    ada = world.user("ada")
    world.placed_job(node, owner=ada)
    order = node.take_up()
    node.run(order, fake_node.step(3))
    node.end(order, "succeeded", fake_node.result(tokens_per_s=1000.0))
    now = timezone.now()
    found = analytics.throughput_by_gpu(ada, Period(now - HOUR, now + HOUR))
    assert list(found) == ["cpu"]
    gpus = Attempt.objects.get().option["config"]["number_gpus"]
    assert found["cpu"].quantile(0.5) == pytest.approx(1000 / gpus, rel=0.01)
