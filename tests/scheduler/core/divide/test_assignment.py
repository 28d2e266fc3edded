"""The assignment of bundles to jobs against trying everything, and both exact ways against each other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.divide import assignment, exact
from scheduler.core.divide.assignment import GAP, assign, greedy
from scheduler.core.divide.columns import Columns, Ints, total
from scheduler.core.divide.relaxation import relax

by_program = partial(assign, table_limit=0)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_both_ways_find_what_trying_everything_finds(data: st.DataObject) -> None:
    columns = draw_columns(data)
    best = min(total(columns, choice) for choice in choices(columns))
    assert total(columns, assign(columns)) == pytest.approx(best)
    assert total(columns, by_program(columns)) == pytest.approx(best, rel=2 * GAP)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_every_way_and_the_greedy_fallback_stay_feasible_and_leave_nothing_that_gains(
    data: st.DataObject,
) -> None:
    columns = draw_columns(data)
    feasible = {tuple(choice) for choice in choices(columns)}
    for found in (assign(columns), by_program(columns), greedy(columns)):
        assert tuple(found) in feasible
        more = {tuple(sorted([*found, column])) for column in range(columns.count)}
        assert not more & feasible - {tuple(found)}


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_choice_undercuts_the_bound_by_more_than_its_columns_exceed_it(data: st.DataObject) -> None:
    columns = draw_columns(data)
    relaxed = relax(columns)
    for choice in choices(columns):
        idle = dict(zip(columns.jobs, relaxed.idle, strict=True))
        for job in columns.jobs[choice]:
            del idle[job]
        above = relaxed.excess[choice].sum() + sum(idle.values())
        assert total(columns, choice) >= relaxed.bound + above - 1e-9


def test_on_a_crowded_cluster_the_program_is_as_good_as_the_table() -> None:
    for seed in range(4):
        columns = crowd(np.random.default_rng(seed), jobs=80, capacity=[64, 96])
        best = total(columns, assign(columns))
        assert best <= total(columns, by_program(columns)) <= best * (1 - 2 * GAP)


def test_many_jobs_that_are_alike_are_counted_and_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of them have a few variables, and each still gets a column of its own."""
    columns = crowd(np.random.default_rng(1), jobs=1, capacity=[300, 900])
    alike = Columns(
        costs=np.tile(columns.costs, 1000),
        jobs=np.repeat(np.arange(1000), columns.count),
        gpus=np.tile(columns.gpus, 1000),
        uses=np.tile(columns.uses, 1000),
        capacity=columns.capacity,
    )
    groups: list[int] = []
    plain = exact.groups_alike

    def counted(columns: Columns, among: Ints) -> list[list[Ints]]:
        found = plain(columns, among)
        groups.append(len(found))
        return found

    monkeypatch.setattr(exact, "groups_alike", counted)
    chosen = assign(alike)
    assert set(groups) == {1}
    assert len(set(alike.jobs[chosen])) == len(chosen)
    assert (alike.uses[:, chosen].sum(axis=1) <= alike.capacity).all()
    assert total(alike, chosen) <= relax(alike).bound * (1 - 10 * GAP)


def test_a_solver_that_gives_up_leaves_the_greedy_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = crowd(np.random.default_rng(2), jobs=40, capacity=[20, 20])
    monkeypatch.setattr(assignment, "by_program", lambda *_: exact.Solved(None, in_time=False))
    assert by_program(columns) == greedy(columns)


def test_a_bundle_for_which_there_is_no_room_at_all_is_left_out() -> None:
    columns = crowd(np.random.default_rng(3), jobs=20, capacity=[0, 3])
    for found in (assign(columns), by_program(columns)):
        assert columns.gpus[found].sum() == 3
    assert assign(replace(columns, capacity=np.array([0, 0]))) == []


def crowd(rng: np.random.Generator, jobs: int, capacity: list[int]) -> Columns:
    """Jobs with concave speed-ups on two types of GPU, the second one twice as fast."""
    sizes = [(kind, gpus) for kind in (0, 1) for gpus in (1, 2, 4, 8)]
    kinds, gpus = np.tile(np.array(sizes), (jobs, 1)).T
    slopes = np.repeat(rng.uniform(0.4, 1.0, jobs), len(sizes))
    return Columns(
        costs=((1 + kinds) * gpus**slopes) ** -0.5 - 1.1,
        jobs=np.repeat(np.arange(jobs), len(sizes)),
        gpus=gpus,
        uses=np.where(kinds == np.arange(2)[:, None], gpus, 0),
        capacity=np.array(capacity),
    )


def draw_columns(data: st.DataObject) -> Columns:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from([1, 2, 4]),
                     st.floats(-1.0, -0.05)), min_size=1, max_size=9).map(sorted))  # fmt: skip
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
