"""One history on a recorded market, two callers: the live loop and the simulator decide alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.clock import database_now
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.histories.rented import OF_A_KIND, RentedHistory, simulate_rented
from tests.harness.histories.simulated import simulated_decisions

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
PERIOD_S = 300.0
ON_DEMAND = set(range(OF_A_KIND))  # the first nodes


def test_the_simulator_decides_what_the_live_loop_decides(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SPOT_PERIOD_S, settings.SPOT_DECIDER = PERIOD_S, "greedy"
    settings.PROVISIONERS = {"cloud": ["true"]}
    at = database_now() - timedelta(hours=3)
    choose_policy(name="spot", parameters={}, actor=world.admin(), reason="golden test", now=at)
    live = RentedHistory(0, monkeypatch)
    live.play()
    made = live.decisions()
    assert live.ended == live.size.jobs
    assert simulated_decisions(live, simulate_rented(live, "greedy", PERIOD_S), 0.0) == made
    assert any(not gpus for _, _, gpus in made)  # too dear, a job was stopped
    kinds = {node for _, _, gpus in made for node, _ in gpus}
    assert kinds & ON_DEMAND
    assert kinds - ON_DEMAND
