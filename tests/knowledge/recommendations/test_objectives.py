"""Deadlines, budgets, the Pareto front, and checking a configuration of one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from knowledge.core.domain.types import Goal, Inventory, Recommendation
from knowledge.core.explain.feasibility import Check
from knowledge.core.recommend.objectives import meets, pareto, ranked
from knowledge.recommendations.recommender import Recommender
from tests.knowledge.conftest import A100, CLUSTER, DATA, L40S
from trainer.recipes import DEFAULT_RECIPE

pytestmark = pytest.mark.django_db
LLAMA = "meta-llama/Llama-3.1-8B"


def ask(**limits: Any) -> Recommendation:
    return Recommender.of(CLUSTER).recommend(model=LLAMA, fixed={}, workload=DATA, **limits)


def check(model: str = LLAMA, **fixed: Any) -> Check:
    return Recommender.of(CLUSTER).check(model=model, fixed=DEFAULT_RECIPE.clean(fixed), workload=DATA)


def test_the_front_holds_exactly_what_no_other_option_beats_in_time_and_cost() -> None:
    found = ask()
    front = pareto(found.options)
    assert found.pareto == tuple(option.key for option in front)

    def beaten(option: Any) -> bool:
        time, cost = option.duration_s.value, option.cost.value
        return any(
            other.duration_s.value <= time
            and other.cost.value <= cost
            and (other.duration_s.value, other.cost.value) != (time, cost)
            for other in found.options
        )

    assert all(not beaten(option) for option in front)
    assert all(beaten(option) for option in found.options if option not in front)


def test_within_a_deadline_the_cheapest_comes_first() -> None:
    fastest = ask(goal=Goal.FASTEST).best
    deadline = 1.5 * fastest.duration_s.value
    found = ask(goal=Goal.CHEAPEST, deadline_s=deadline)
    kept = [option for option in found.options if meets(option, deadline)]
    assert found.options[: len(kept)] == tuple(kept)
    assert found.best.cost.value == min(option.cost.value for option in kept)


def test_within_a_budget_the_fastest_comes_first() -> None:
    priced = [option for option in ask().options if option.cost.value > 0]
    budget = 1.2 * min(option.cost.value for option in priced)
    best = ranked(priced, Goal.FASTEST, budget=budget)[0]
    assert best.cost.value <= budget
    assert best.duration_s.value == min(o.duration_s.value for o in priced if o.cost.value <= budget)


@pytest.mark.parametrize("goal", [Goal.CHEAPEST, Goal.DEADLINE])
def test_a_place_without_a_price_is_cheaper_than_any_that_has_one(goal: Goal) -> None:
    free, dear = replace(L40S, price_per_gpu_hour=0.0), replace(A100, price_per_gpu_hour=0.01)
    options = (
        Recommender.of(Inventory(pools=(free, dear)))
        .recommend(model=LLAMA, fixed={}, workload=DATA, goal=goal)
        .options
    )
    costs = [option.cost.value for option in options]
    assert costs == sorted(costs)
    unpriced = [option.duration_s.value * option.gpus for option in options if not option.cost.value]
    assert len(unpriced) > 1
    assert unpriced == sorted(unpriced)


def test_limits_that_nothing_meets_are_named() -> None:
    found = ask(deadline_s=1.0)
    assert any("No option meets the limits" in note for note in found.notes)
    assert found.options[0].duration_s.value == min(o.duration_s.value for o in found.options)


def test_a_configuration_that_fits_is_left_as_it_is() -> None:
    found = check(gpu_model="A100-SXM4-80GB", number_gpus=1, per_device_batch_size=1)
    assert found.fits
    assert found.changes == {}
    assert found.option.config.per_device_batch_size == 1


def test_too_large_a_micro_batch_is_made_smaller_and_the_effective_batch_kept() -> None:
    found = check(
        gpu_model="L40S",
        number_gpus=1,
        per_device_batch_size=32,
        gradient_accumulation_steps=1,
        tokens_per_sample=4096,
        tuning="lora",
    )
    assert not found.fits
    assert set(found.changes) <= {"per_device_batch_size", "gradient_accumulation_steps"}
    assert found.changes["per_device_batch_size"][1] < 32
    assert found.option.config.effective_batch_size == 32
    assert "batch size per GPU 32 →" in found.reason


def test_full_training_that_no_single_gpu_holds_gets_more_gpus() -> None:
    found = check(gpu_model="L40S", number_gpus=1, tuning="full")
    assert found.changes["number_gpus"][0] == 1
    assert found.changes["number_gpus"][1] > 1
    assert "tuning" not in found.changes


def test_what_no_change_makes_fit_says_so() -> None:
    found = check("llama3.1-405b", tuning="full", gpu_model="L40S")
    assert not found.fits
    assert "No single change" in found.reason
