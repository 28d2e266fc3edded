"""Sia's choice against its worked example, and the actions that realise it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from scheduler.core.divide.capacity import Capacity
from scheduler.core.divide.repack import realize
from scheduler.core.policies.sia import SIA, restart_factor
from scheduler.core.types import ClusterState, JobInfo, Preempt, Resize, Start, Wait
from tests.scheduler.core.clusters import decide, job, node, option, running

PLAIN = replace(SIA, change=0.0)
RATES = {
    "j1": (10, 19, 34, 4, 7.6, 14),
    "j2": (6, 11, 18, 4, 7.5, 13),
    "j3": (5, 6, 6.5, 4, 5, 5.5),
}
BUNDLES = [(model, gpus) for model in ("A", "L") for gpus in (1, 2, 4)]
FREE = Capacity({("A", ""): 4, ("L", ""): 4})


def options_of(name: str) -> list:  # type: ignore[type-arg]
    return [option(model, gpus, rate=rate) for (model, gpus), rate in zip(BUNDLES, RATES[name], strict=True)]


def chosen(jobs: list[JobInfo], now: float) -> tuple[dict[str, str], float]:
    """(bundle of each job, objective)."""
    options = [options_of(job.id) for job in jobs]
    found = PLAIN.choose(jobs, options, FREE, now)
    costs = {job.id: dict(zip(map(str, opts), PLAIN.costs(job, opts, now), strict=True))
             for job, opts in zip(jobs, options, strict=True)}  # fmt: skip
    objective = sum(costs[job.id][str(opt)] for job, opt in found) + PLAIN.idle * (len(jobs) - len(found))
    return {job.id: f"{opt.gpu_model}{opt.gpus}" for job, opt in found}, objective


def test_the_worked_example() -> None:
    found, objective = chosen([job(name) for name in RATES], 0.0)
    assert found == {"j1": "A2", "j2": "L4", "j3": "A2"}
    assert objective == pytest.approx(1.83003, abs=1e-5)


@pytest.mark.parametrize(
    ("age", "factor", "found", "objective"),
    [
        (120.0, 0.333, {"j1": "L4", "j2": "A2", "j3": "A2"}, 1.95404),
        (600.0, 0.818, {"j1": "A2", "j2": "L4", "j3": "A2"}, 1.93700),
    ],
)
def test_a_young_job_stays_and_an_old_one_moves(
    age: float, factor: float, found: dict[str, str], objective: float
) -> None:
    current = {"j1": option("L", 4), "j2": option("A", 2), "j3": option("A", 2)}
    jobs = [
        running(name, held, *[("n", i) for i in range(held.gpus)], at=0.0, restart_s=60.0, restarts=1)
        for name, held in current.items()
    ]
    assert restart_factor(jobs[0], age) == pytest.approx(factor, abs=1e-3)
    assert chosen(jobs, age) == (found, pytest.approx(objective, abs=1e-5))


sia = partial(decide, "sia")


def test_idle_gpus_go_to_a_job_that_gains_from_them() -> None:
    job_ = job("j", option(gpus=1, rate=10), option(gpus=4, rate=35))
    assert sia([job_], [node("n", 4)])["j"] == Start("j", job_.options[1], tuple(("n", i) for i in range(4)))


def test_a_newcomer_makes_a_running_job_smaller_through_a_checkpoint() -> None:
    small, large = option(gpus=2, rate=19), option(gpus=4, rate=21)
    holder = replace(running("old", large, *[("n", i) for i in range(4)]), options=(large, small))
    plan = sia([holder, job("new", small, large)], [node("n", 0, total=4)])
    assert plan["old"] == Resize("old", small, (("n", 0), ("n", 1)))
    assert plan["new"] == Start("new", small, (("n", 2), ("n", 3)))


def test_a_job_that_keeps_its_bundle_keeps_its_gpus() -> None:
    one = option(gpus=1)
    plan = sia([running("old", one, ("n", 1)), job("new", one)], [node("n", 1, total=2)])
    assert set(plan) == {"new"}


def test_small_jobs_make_way_for_a_whole_node() -> None:
    one = option(gpus=1)
    holders = [running("a", one, ("n", 0)), running("b", one, ("m", 0))]
    nodes = [replace(node(name, 0, total=2), free=(1,)) for name in ("n", "m")]
    plan = sia([*holders, job("pair", option(gpus=2))], nodes)
    assert isinstance(plan["pair"], Start)
    assert sum(isinstance(action, Resize) for action in plan.values()) == 1


def test_a_larger_priority_is_served_first() -> None:
    one = option(gpus=1)
    plan = sia([running("old", one, ("n", 0)), job("urgent", one, priority=1)], [node("n", 0, total=1)])
    assert isinstance(plan["urgent"], Start)
    assert isinstance(plan["old"], Preempt)


def test_nobody_is_stopped_for_a_gang_that_then_finds_no_place() -> None:
    """Four GPUs are enough in number for the gang, but no node has four."""
    one, four = option(gpus=1), option(gpus=4, rate=1e6)
    jobs = [running("old", one, ("n", 0)), job("gang", four)]
    nodes = [node("m", 1, total=2), replace(node("n", 0, total=2), free=(1,)), node("o", 1, total=4)]
    state = ClusterState(jobs=tuple(jobs), nodes=tuple(nodes))
    assert not [action for action in realize(state, jobs, {"gang": four}) if not isinstance(action, Wait)]
