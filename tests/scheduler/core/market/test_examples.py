"""The worked examples, number by number."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from scheduler.core.market.deciders import (
    SlotChoice,
    ahanp,
    greedy,
    on_demand,
    pace,
    rest_costs,
    to_go,
)
from scheduler.core.market.optimum import optimum
from scheduler.core.market.replay import live
from scheduler.core.market.types import NOTHING
from scheduler.core.market.uniform import Mode, Stand, next_mode
from tests.scheduler.core.market.examples import JOB, OFFERS, USUAL, persistent, true


def test_the_optimum() -> None:
    assert optimum(JOB, OFFERS) == pytest.approx(14.5)
    assert optimum(replace(JOB, rates={1: 1.0, 2: 2.0, 4: 4.0}), OFFERS) == pytest.approx(14.5)


def test_on_demand_nodes_alone() -> None:
    kept_pace = live(JOB, on_demand, OFFERS)
    assert (kept_pace.cost, kept_pace.utility, kept_pace.spot) == (19.0, 5.0, (0,) * 6)
    always_four = live(JOB, lambda now: SlotChoice(4), [NOTHING] * 6)
    assert (always_four.cost, always_four.utility, always_four.slots) == (20.0, 4.0, 5)


def test_ahanp_and_greedy() -> None:
    careful = live(JOB, partial(ahanp, sigma=0.5), OFFERS)
    assert (careful.sizes, careful.spot) == ((4, 3, 3, 3, 4, 4), (4, 1, 0, 3, 4, 4))
    assert (careful.cost, careful.utility) == pytest.approx((11.5, 12.5))
    opportunistic = live(JOB, greedy, OFFERS)
    assert opportunistic.sizes == (4, 1, 4, 3, 4, 4)  # the guard buys slot 3
    assert opportunistic.utility == pytest.approx(13.5)


@pytest.mark.parametrize(
    ("ahead", "averaged", "with_true", "with_persistent"),
    [(1, 1, 12.9, 12.5), (2, 1, 14.0, 12.5), (3, 1, 14.0, 12.5), (3, 2, 14.0, 11.8), (3, 4, 13.5, 12.3)],
)
def test_pace(ahead: int, averaged: int, with_true: float, with_persistent: float) -> None:
    decider = partial(pace, ahead=ahead, averaged=averaged, sigma=0.5)
    assert live(JOB, decider, OFFERS, true()).utility == pytest.approx(with_true)
    assert live(JOB, decider, OFFERS, persistent()).utility == pytest.approx(with_persistent)


@pytest.mark.parametrize("foresee", [true(), persistent()])
def test_to_go(foresee: object) -> None:
    decider = partial(to_go, ahead=3, averaged=1)
    assert live(JOB, decider, OFFERS, foresee, USUAL).utility == pytest.approx(14.0)  # type: ignore[arg-type]


def test_what_the_rest_costs_at_usual_prices() -> None:
    costs = rest_costs(JOB, USUAL, np.array([10.0, 12.0, 17.0]), slots=4)
    assert costs.tolist() == pytest.approx([4.5, 6.1333, float("inf")], abs=1e-4)


PRICES = {Mode.IDLE: 0, Mode.SPOT: 1, Mode.ON_DEMAND: 3}
ON_OFFER = [True] * 4 + [False] * 6 + [True] * 5 + [False] * 3 + [True] * 6


def by_the_hour(rule: str) -> tuple[int, int]:
    """Money and end of 12 hours of work in 24, where each start takes an hour."""
    mode, done, money, starting = Mode.IDLE, 0, 0, 0
    for hour, spot in enumerate(ON_OFFER):
        stand = Stand(elapsed=hour, done=done, work=12, deadline=24, changeover=1)
        before = mode if mode is not Mode.SPOT or spot else Mode.IDLE
        mode = next_mode(mode, stand, spot=spot)
        if rule == "greedy" and not (stand.is_urgent and before is not Mode.SPOT):
            mode = Mode.SPOT if spot else Mode.IDLE
        if rule == "on demand":
            mode = Mode.ON_DEMAND
        starting = 1 if mode is not before else max(0, starting - 1)
        money += PRICES[mode]
        done += mode is not Mode.IDLE and not starting
        if done == 12:
            return money, hour + 1
    raise AssertionError("it never ended")


def test_the_uniform_progress_rule() -> None:
    assert by_the_hour("uniform") == (26, 22)
    assert by_the_hour("greedy") == (27, 23)
    assert by_the_hour("on demand") == (39, 13)
