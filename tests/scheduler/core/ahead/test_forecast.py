"""Intervals of several plays hold as often as they say."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import quantiles

import pytest

from knowledge.core.domain.types import Interval
from scheduler.core.ahead.durations import STRATA, Draws, Spread
from scheduler.core.ahead.forecast import JUDGED, IntervalWidths, calibrated, forecasts, play_all
from scheduler.core.ahead.play_input import PastArrivals, PlayInput
from scheduler.core.policies import POLICIES
from scheduler.core.types import ClusterState
from tests.scheduler.core.ahead.test_play import BUSY, FULL, sure
from tests.scheduler.core.clusters import job, node

WIDE = Interval(100.0, 50.0, 400.0)


def test_a_spread_has_the_interval_that_was_predicted() -> None:
    at = sorted(Spread(WIDE).at(Draws().z("j", draw)) for draw in range(STRATA))
    assert quantiles(at, n=10)[0] == pytest.approx(50, rel=0.1)
    assert quantiles(at, n=10)[8] == pytest.approx(400, rel=0.1)


def test_what_is_left_follows_from_the_time_that_passed() -> None:
    """Beside 200,000 durations of which those count that last at least so long."""
    rng = random.Random(1)
    spread = Spread(WIDE)
    whole = [spread.at(rng.gauss()) for _ in range(200_000)]
    for elapsed_s in (60.0, 300.0, 700.0):
        left = sorted(one - elapsed_s for one in whole if one > elapsed_s)
        assert spread.left_at(0.0, elapsed_s) == pytest.approx(left[len(left) // 2], rel=0.05)


def test_far_beyond_its_promise_a_job_still_has_time_left() -> None:
    assert Spread(Interval(10.0, 9.0, 11.0)).left_at(0.0, 5000.0) > 0


def test_a_job_draws_the_same_luck_whatever_else_waits() -> None:
    one, other = Draws(), Draws()
    other.z("else", 3)
    assert [one.z("j", draw) for draw in range(STRATA)] == [other.z("j", draw) for draw in range(STRATA)]


def test_a_start_has_a_median_and_an_interval() -> None:
    running = replace(
        BUSY, holds=BUSY.holds and replace(BUSY.holds, option=replace(sure(100), duration_s=WIDE))
    )
    state = ClusterState(jobs=(running, job("a", sure(30))), nodes=(FULL,))
    known = PlayInput(state=state, now=0.0, policy=POLICIES["fifo"])
    reported = forecasts(known, play_all(known))["a"]
    assert reported.start.low is not None
    assert reported.start.high is not None
    assert 0 < reported.start.low < reported.start.value < reported.start.high
    assert reported.end is not None
    assert reported.end.value == pytest.approx(reported.start.value + 30)


def test_plays_that_are_cut_short_tell_no_start() -> None:
    state = ClusterState(jobs=(BUSY, job("a", sure(30))), nodes=(FULL,))
    known = PlayInput(state=state, now=0.0, policy=POLICIES["fifo"])
    assert forecasts(known, play_all(known, more=lambda _: lambda: False)) == {}


def test_widths_are_such_that_judged_forecasts_would_have_held() -> None:
    rng = random.Random(2)
    reported = Interval(100.0, 90.0, 110.0)
    actual = [100.0 + 30 * rng.gauss() for _ in range(400)]
    widths = calibrated((reported, one) for one in actual)
    held = sum(100 - 10 * widths.below <= one <= 100 + 10 * widths.above for one in actual)
    assert held / 400 == pytest.approx(0.8, abs=0.03)
    assert calibrated((reported, one) for one in actual[: JUDGED - 1]) == IntervalWidths()


def test_arrivals_of_several_days_keep_their_hour() -> None:
    day = 86_400.0
    past = PastArrivals(
        begins_at=0.0, ends_at=5 * day,
        jobs=tuple(job(f"p{number}", sure(1), at=number * day + 3600) for number in range(5)),
    )  # fmt: skip
    first = next(past.resampled(5 * day + 600, draw=4))
    assert first.submitted_at == pytest.approx(5 * day + 3600)


def test_gpus_of_several_jobs_are_those_of_one_play() -> None:
    """Whichever GPU is free first takes the next job."""
    jobs = [job(name, replace(sure(100), duration_s=WIDE), at=float(at)) for at, name in enumerate("abcd")]
    known = PlayInput(
        state=ClusterState(jobs=tuple(jobs), nodes=(node("n0", 2),)), now=0.0, policy=POLICIES["fifo"]
    )
    plays = play_all(known)
    reported = forecasts(known, plays)
    assert {reported["a"].gpus, reported["b"].gpus} == {(("n0", 0),), (("n0", 1),)}
    placed = {name: one.gpus for name, one in reported.items()}
    assert any({name: life.gpus for name, life in play.items()} == placed for play in plays)
