"""Sia's choice against its worked example and brute force.

The actions that realise the choice are tested too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.divide.assignment import Columns, assign, greedy, total
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


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_solver_finds_what_trying_everything_finds(data: st.DataObject) -> None:
    columns = draw_columns(data)
    best = min(total(columns, choice) for choice in choices(columns))
    assert total(columns, assign(columns)) == pytest.approx(best, abs=1e-3)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_rounding_and_the_greedy_fallback_stay_feasible_and_leave_nothing_that_gains(
    data: st.DataObject,
) -> None:
    columns = draw_columns(data)
    feasible = {tuple(choice) for choice in choices(columns)}
    for found in (assign(columns, milp_columns=0), greedy(columns)):
        assert tuple(found) in feasible
        more = {tuple(sorted([*found, column])) for column in range(columns.count)}
        assert not more & feasible - {tuple(found)}


def test_rounding_is_close_to_the_optimum_on_a_crowded_cluster() -> None:
    rng = np.random.default_rng(1)
    jobs = [job(f"j{i:03}") for i in range(100)]
    slopes = rng.uniform(0.4, 1.0, len(jobs))
    options = [
        [option(m, g, rate=(1 + speed) * g**slope) for speed, m in enumerate("AL") for g in (1, 2, 4, 8)]
        for slope in slopes
    ]
    objectives = []
    for policy in (PLAIN, replace(PLAIN, milp_columns=0)):
        found = {
            j.id: o for j, o in policy.choose(jobs, options, Capacity({("A", ""): 64, ("L", ""): 96}), 0.0)
        }
        costs = [
            policy.costs(j, own, 0.0)[own.index(found[j.id])]
            for j, own in zip(jobs, options, strict=True)
            if j.id in found
        ]
        objectives.append(sum(costs) + PLAIN.idle * (len(jobs) - len(costs)))
    assert objectives[0] <= objectives[1] <= 1.01 * objectives[0]


def draw_columns(data: st.DataObject) -> Columns:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from([1, 2, 4]),
                     st.floats(-1.0, -0.05)), min_size=1, max_size=9))  # fmt: skip
    jobs, kinds, gpus, costs = (np.array(part) for part in zip(*rows, strict=True))
    capacity = np.array([data.draw(st.integers(0, 8)), data.draw(st.integers(0, 8))])
    uses = np.where(kinds == np.arange(2)[:, None], gpus, 0)
    if data.draw(st.booleans()):  # a narrower limit: some jobs can use a part of the first type only
        uses = np.vstack([uses, np.where(jobs % 2, uses[0], 0)])
        capacity = np.append(capacity, data.draw(st.integers(0, int(capacity[0]))))
    return Columns(costs=costs, jobs=jobs, gpus=gpus, uses=uses, capacity=capacity)


def choices(columns: Columns) -> list[list[int]]:
    """All feasible choices."""
    found = []
    for bits in product([0, 1], repeat=columns.count):
        choice = [column for column, bit in enumerate(bits) if bit]
        used = columns.uses[:, choice].sum(axis=1)
        if len(set(columns.jobs[choice])) == len(choice) and (used <= columns.capacity).all():
            found.append(choice)
    return found


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
