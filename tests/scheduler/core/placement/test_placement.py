"""Which nodes a gang takes."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler.core.placement.fit import FreeGpus, Placement, alpha_score
from scheduler.core.types import Preempt
from tests.scheduler.core.clusters import by_qlora, decide, job, node, option, running


def test_best_fit_leaves_the_large_hole_for_the_large_gang() -> None:
    free = FreeGpus([node("big", 8), node("small", 2), node("middle", 4)])
    assert free.place(option(gpus=2)) == (("small", 0), ("small", 1))


def test_a_gang_over_two_nodes_takes_equal_shares_or_nothing() -> None:
    two_nodes = option(gpus=4, nodes=2)
    assert FreeGpus([node("a", 3), node("b", 1)]).place(two_nodes) is None
    placed = FreeGpus([node("a", 3), node("b", 2)]).place(two_nodes)
    assert placed == (("b", 0), ("b", 1), ("a", 0), ("a", 1))


def test_what_is_taken_is_gone_until_it_is_given_back() -> None:
    free, two = FreeGpus([node("a", 3)]), option(gpus=2)
    placed = free.place(two)
    assert placed is not None
    free.take(two, placed)
    assert free.place(two) is None
    free.give(two, placed)
    assert free.place(two) is not None


def test_spread_takes_the_emptiest_nodes() -> None:
    free = FreeGpus([node("full", 2, total=8), node("empty", 8)], Placement.SPREAD)
    assert free.place(option(gpus=2)) == (("empty", 0), ("empty", 1))


def test_consolidated_takes_whole_nodes_and_puts_the_rest_where_it_fits_best() -> None:
    free = FreeGpus([node("a", 5, total=8), node("b", 8), node("c", 4, total=8)], Placement.CONSOLIDATED)
    placed = free.place(option(gpus=12, nodes=3))
    assert placed is not None
    assert Counter(name for name, _ in placed) == {"b": 8, "c": 4}
    assert free.place(option(gpus=16, nodes=2)) is None


def test_distributed_takes_any_free_gpus() -> None:
    free = FreeGpus([node("a", 1, total=8), node("b", 2, total=8)], Placement.DISTRIBUTED)
    assert free.place(option(gpus=3)) == (("b", 0), ("b", 1), ("a", 0))
    assert free.place(option(gpus=4)) is None
    assert free.could_hold(option(gpus=16))


@pytest.mark.parametrize("placement", Placement)
def test_nodes_that_cannot_train_by_its_tuning_are_no_place_for_a_gang(placement: Placement) -> None:
    nodes = [node("unable", 8, cannot_train=frozenset({"qlora"})), node("able", 4)]
    free = FreeGpus(nodes, placement)
    four = by_qlora(option(gpus=4))
    assert {name for name, _ in free.place(four) or ()} == {"able"}
    assert free.place(by_qlora(option(gpus=8))) is None
    assert not free.could_hold(by_qlora(option(gpus=8)))
    assert free.could_hold(option(gpus=8))
    assert (free.count_for(four), free.count_for(option(gpus=4))) == (4, 12)
    pinned = job("j", four, only_node="unable")
    assert free.place(four, pinned) is None
    assert not free.could_hold(four, job("pinned", four, only_node="unable"))


@pytest.mark.parametrize("policy", ["srtf", "topology"])
def test_nobody_is_stopped_on_a_node_that_is_no_use(policy: str) -> None:
    nodes = [node("unable", 0, total=4, cannot_train=frozenset({"qlora"})), node("able", 0, total=4)]
    four = option(gpus=4)
    cheap = running("cheap", four, *((("unable", index)) for index in range(4)))
    long = option(gpus=4, duration_s=1e6)
    dear = running("dear", long, *((("able", index)) for index in range(4)), unsaved_s=1e4)
    urgent = job("urgent", by_qlora(four), priority=5)
    actions = decide(policy, [cheap, dear, urgent], nodes)
    assert {name for name, action in actions.items() if isinstance(action, Preempt)} == {"dear"}


@pytest.mark.parametrize(
    ("free", "score"), [((4, 80), -3.0), ((8, 160), -2.5), ((2, 80), -4.0), ((4, 160), -3.25)]
)
def test_alpha_evolve_scores_the_worked_example(free: tuple[float, float], score: float) -> None:
    assert alpha_score(2, free[0], 40, free[1]) == pytest.approx(score)


def test_alpha_evolve_takes_the_highest_score_over_gpus_and_memory() -> None:
    nodes = [
        node(name, gpus, total=8, free_memory_bytes=memory)
        for name, gpus, memory in [("a", 4, 80.0), ("b", 8, 160.0), ("c", 2, 80.0), ("d", 4, 160.0)]
    ]
    free = FreeGpus(nodes, Placement.ALPHA)
    placed = free.place(option(gpus=2), job("j", option(gpus=2), host_memory_bytes=40.0))
    assert placed == (("b", 0), ("b", 1))
    assert free.place(option(gpus=2), job("k", option(gpus=2), host_memory_bytes=500.0)) is None


def test_a_job_whose_checkpoint_lies_on_one_node_goes_there_or_nowhere() -> None:
    free = FreeGpus([node("a", 1), node("b", 4)])
    assert free.place(option(gpus=2), job("j", option(gpus=2), only_node="a")) is None
    assert free.place(option(gpus=2), job("j", option(gpus=2), only_node="b")) == (("b", 0), ("b", 1))
    across = option(gpus=2, nodes=2)
    assert not free.could_hold(across, job("pinned", across, only_node="b"))
