"""Goals mean what they say: money where nodes have prices, and the trade against the runner-up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.core.domain.types import Config, Goal, Interval, Option, Source, all_priced
from knowledge.core.explain.explanations import unpriced
from knowledge.core.explain.trade import trade
from knowledge.core.recommend.objectives import ranked

HOUR = 3600.0


def option(gpu_model: str, gpus: int, hours: float, cost: float = 0.0) -> Option:
    config = Config(
        model_name="llama3.1-8b", tuning="lora", gpu_model=gpu_model, number_gpus=gpus,
        per_device_batch_size=1, tokens_per_sample=1024,
    )  # fmt: skip
    return Option(
        config=config, p_valid=0.99, tokens_per_second=Interval(1.0), peak_memory_bytes=Interval(1.0),
        startup_s=1.0, duration_s=Interval(hours * HOUR), cost=Interval(cost), source=Source.MODEL,
    )  # fmt: skip


H100, A100 = option("H100", 8, 3.75, 78.1), option("A100", 8, 4.2, 47.2)  # seen in an afternoon's use


def test_balanced_weighs_money_where_every_node_has_a_price() -> None:
    assert ranked([H100, A100], Goal.BALANCED)[0] is A100
    free = [replace(one, cost=Interval(0.0)) for one in (H100, A100)]
    assert ranked(free, Goal.BALANCED)[0] is free[0], "without prices GPU time counts"


def test_in_a_mixed_cluster_gpu_time_counts_and_a_note_says_so() -> None:
    unknown = replace(A100, cost=Interval(0.0))
    assert not all_priced([H100, unknown])
    assert ranked([unknown, H100], Goal.BALANCED)[0] is H100
    assert "Some nodes have no price" in unpriced((H100, unknown), Goal.BALANCED)[0]
    assert not unpriced((H100, A100), Goal.BALANCED)


@pytest.mark.parametrize(
    ("best", "other", "said"),
    [
        (H100, A100, "Compared with 8 × A100, the runner-up, it takes 11% less time and costs 65% more."),
        (A100, H100, "Compared with 8 × H100, the runner-up, it takes 12% more time and costs 40% less."),
        (option("a", 1, 2, 1.0), option("b", 1, 2, 1.001), "it takes as long and costs the same."),
        (option("a", 4, 1), option("b", 1, 2), "it takes 50% less time and uses 100% more GPU time."),
        (option("a", 2, 1), option("b", 1, 2), "it takes 50% less time and uses as much GPU time."),
    ],
)
def test_the_trade_against_the_runner_up_is_one_sentence(best: Option, other: Option, said: str) -> None:
    assert trade([best, other]).endswith(said)


def test_nothing_is_compared_with_a_stated_default_or_with_nothing() -> None:
    assert not trade([H100])
    assert not trade([H100, replace(A100, source=Source.DEFAULT)])
