"""One history, two callers: policies that stop, move and resize running jobs.

The live loop with fake nodes and the simulator make the same decisions, round by round.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from portal.clock import database_now
from scheduler.models import Attempt
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.invariants import assert_sound
from tests.harness.live_history import GOLDEN, LiveHistory, simulate, told

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

RANKS: dict[str, Any] = {"round_s": 40, "min_run_s": 40, "cooldown_s": 20}
CHOICES: dict[str, dict[str, Any]] = {
    "sia": {"round_s": 40, "min_run_s": 40},
    "gavel": {"round_s": 40, "min_run_s": 40, "reset_s": 80},
    "tiresias": {**RANKS, "limits_gpu_s": [60, 300]},
    "srtf": RANKS,
    "las": RANKS,
    "gittins": RANKS,
}


@pytest.mark.parametrize(
    ("policy", "seed"),
    [
        ("sia", 3),
        ("gavel", 0),
        *(pytest.param(name, 0, marks=pytest.mark.slow) for name in ("tiresias", "srtf", "las", "gittins")),
    ],
)
def test_the_simulator_stops_and_resizes_what_the_live_loop_does(
    policy: str, seed: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gangs over nodes, classes, stops, moves, resizes, and memory from one round to the next."""
    settings.MAX_NODES_PER_JOB = 2
    choose_policy(
        name=policy,
        parameters=CHOICES[policy],
        actor=world.admin(),
        reason="golden test",
        now=database_now() - timedelta(hours=2),
    )
    live = LiveHistory(seed, monkeypatch)
    live.play()
    assert live.ended == GOLDEN.jobs
    made = live.decisions()
    assert told(live, simulate(live)) == made
    assert any(not gpus for _, _, gpus in made)
    if policy == "sia":
        assert Attempt.objects.filter(outcome="stopped", stopped_for=F("job")).exists()  # resized
    assert_sound()
