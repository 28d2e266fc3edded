"""A simulation of the own past reproduces what the live loop really did, under several policies."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from portal.clock import database_now
from portal.events.models import Event
from scheduler.models import Attempt, Simulation
from scheduler.services.jobs.priorities import hold_job, move_to_front, release_job
from scheduler.services.jobs.verbs import pause_job, resume_job
from scheduler.services.policy import choose_policy
from scheduler.services.simulations.play import play_next
from scheduler.services.simulations.request import SimulationRequest, request_simulation
from tests.harness import world
from tests.harness.histories.live import LiveHistory, PlannedAct, Size

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
SLOW = partial(pytest.param, marks=pytest.mark.slow)
WITHIN = 0.05
PLAIN = Size(jobs=6, arrivals_s=100, step_s=10, steps=200)
RULES = Size(jobs=8, arrivals_s=100, step_s=10, steps=200, rules=True)
ROUNDS: dict[str, Any] = {"round_s": 40, "min_run_s": 40}
CHOICES: dict[str, dict[str, Any]] = {
    "tiresias": {**ROUNDS, "cooldown_s": 20, "limits_gpu_s": [60, 300]},
    "sia": ROUNDS,
}


def recorded(policy: str, size: Size, settings: Any, monkeypatch: pytest.MonkeyPatch) -> LiveHistory:
    """A history that the live loop makes on fake nodes."""
    settings.MAX_NODES_PER_JOB = 2
    choose_policy(
        name=policy, parameters=CHOICES.get(policy, {}), actor=world.admin(), reason="a history",
        now=database_now() - timedelta(hours=3),
    )  # fmt: skip
    live = LiveHistory(0, monkeypatch, size)
    live.play()
    assert live.ended == size.jobs
    return live


def simulated(*policies: str, **values: Any) -> Simulation:
    question = SimulationRequest(policies=policies, knowledge="performance", **values)
    made = request_simulation(question=question, actor=world.admin(), now=database_now())
    while play_next(now=database_now):
        pass
    made.refresh_from_db()
    return made


def off(made: Simulation) -> dict[str, float]:
    """By how much each simulated figure is off."""
    reproduction = made.reproduction
    assert reproduction["trouble"] == "", reproduction
    return {
        name: abs(reproduction["simulated"][name] / real - 1) for name, real in reproduction["real"].items()
    }


@pytest.mark.parametrize("policy", [SLOW("fifo"), SLOW("tiresias"), SLOW("sia")])
def test_the_past_is_reproduced(policy: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    live = recorded(policy, PLAIN, settings, monkeypatch)
    made = simulated(policy)
    assert made.state == "done", made.message
    assert (made.reproduction["policies"], made.reproduction["jobs"]) == ([policy], len(live.jobs))
    assert Attempt.objects.filter(outcome="stopped").exists() == (policy != "fifo")
    assert max(off(made).values()) <= WITHIN


ACTS = (
    PlannedAct(100, 6, hold_job), PlannedAct(100, 7, move_to_front), PlannedAct(150, 0, pause_job),
    PlannedAct(200, 1, pause_job), PlannedAct(400, 0, resume_job), PlannedAct(500, 6, release_job),
    PlannedAct(600, 1, resume_job),
)  # fmt: skip


@pytest.mark.parametrize("policy", [SLOW("fifo"), SLOW("tiresias"), SLOW("easy")])
def test_it_is_with_holds_pauses_and_moves_to_the_front(
    policy: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(policy, replace(PLAIN, jobs=8, acts=ACTS), settings, monkeypatch)
    kinds = {*Event.objects.values_list("type", flat=True)}
    assert kinds >= {"job.held", "job.released", "job.moved_to_the_front"}
    assert Event.objects.filter(new="paused").count() == 2
    made = simulated(policy)
    assert max(off(made).values()) <= WITHIN
    monkeypatch.setattr("scheduler.services.simulations.own_past.past_acts", lambda *_: ())
    assert max(off(simulated(policy)).values()) > WITHIN  # they matter here


@pytest.mark.parametrize("policy", [SLOW("fifo"), SLOW("tiresias")])
def test_it_is_with_jobs_that_ran_when_the_range_began(
    policy: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = recorded(policy, replace(PLAIN, jobs=10, arrivals_s=400), settings, monkeypatch)
    since = live.jobs[4].submitted_at
    made = simulated(policy, since=since)
    assert made.results[0]["finished"] == made.reproduction["jobs"] < len(live.jobs)
    assert max(off(made).values()) <= WITHIN
    monkeypatch.setattr("scheduler.services.simulations.own_past.edge_jobs", lambda *_: [])
    assert max(off(simulated(policy, since=since)).values()) > WITHIN  # they took GPUs


@pytest.mark.parametrize("policy", ["easy", SLOW("sia")])
def test_it_is_with_teams_that_have_quotas_and_jobs_that_wait_for_others(
    policy: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(policy, RULES, settings, monkeypatch)
    made = simulated(policy)
    assert max(off(made).values()) <= WITHIN
