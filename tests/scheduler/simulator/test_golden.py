"""One history, two callers, under every policy that the portal may run.

The live loop with fake nodes and the simulator make the same decisions: starts, stops, moves and resizes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from portal.clock import database_now
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.policies import LIVE
from scheduler.core.types import Topology
from scheduler.models import Attempt
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.histories.live import CLOSE, GOLDEN, PLAIN, Decision, LiveHistory, Size
from tests.harness.histories.simulated import simulate, simulated_decisions
from tests.harness.invariants import assert_sound
from tests.harness.sampling import mostly_on_demand

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]

RANKS: dict[str, Any] = {"round_s": 40, "min_run_s": 40, "cooldown_s": 20}
CHOICES: dict[str, dict[str, Any]] = {
    "sia": {"round_s": 40, "min_run_s": 40},
    "gavel": {"round_s": 40, "min_run_s": 40, "reset_s": 80},
    "tiresias": {**RANKS, "limits_gpu_s": [60, 300]},
    "uwfq": {"round_s": 40, "cooldown_s": 20, "segment_s": 120},
    "srtf": RANKS,
    "las": RANKS,
    "gittins": RANKS,
}
STOPS = ("srtf", "las", "tiresias", "gittins", "sia", "gavel", "uwfq")  # in these histories


def _play(policy: str, size: Size, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[Decision]:
    """The decisions of the live loop; the simulator decides the same."""
    settings.MAX_NODES_PER_JOB = 2
    choose_policy(
        name=policy,
        parameters=CHOICES.get(policy, {}),
        actor=world.admin(),
        reason="golden test",
        now=database_now() - timedelta(hours=3),
    )
    live = LiveHistory(0, monkeypatch, size)
    live.play()
    assert live.ended == size.jobs
    made = live.decisions()
    assert simulated_decisions(live, simulate(live)) == made
    assert_sound()
    return made


@pytest.mark.parametrize("policy", mostly_on_demand(LIVE, ["easy", "sia"]))
def test_the_simulator_decides_what_the_live_loop_decides(
    policy: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gangs over nodes, classes, quotas, limits, dependencies, times to begin, an array, and memory."""
    made = _play(policy, GOLDEN, settings, monkeypatch)
    assert any(not gpus for _, _, gpus in made) == (policy in STOPS)
    if policy == "sia":
        assert Attempt.objects.filter(outcome="stopped", stopped_for=F("job")).exists()  # resized


@pytest.mark.slow
def test_stops_are_the_same_where_nobody_set_a_quota(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(not gpus for _, _, gpus in _play("srtf", PLAIN, settings, monkeypatch))


@pytest.mark.parametrize("policy", mostly_on_demand(LIVE, ["topology"]))
def test_they_are_the_same_where_jobs_ask_for_close_gpus(
    policy: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes declare where their slots sit; gangs require one NUMA node, or wish for it."""
    made = _play(policy, CLOSE, settings, monkeypatch)
    required = Attempt.objects.filter(job__topology=Topology.GUARANTEED)
    assert {attempt.link_level for attempt in required} == {TopologyLevel.NUMA}
    if policy in ("topology", "tiresias"):
        assert any(not gpus for _, _, gpus in made)
    assert Attempt.objects.filter(link_level=TopologyLevel.SOCKET).exists()  # of a gang that asks nothing
