"""How much closeness is worth: the worked example, and options that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.adapted_layers import ALL_LINEAR
from knowledge.core.domain.types import Config, Interval
from knowledge.core.predict.base import PriorPredictor
from knowledge.core.recommend import duration
from knowledge.core.recommend.link_levels import PCIE_BYTES_S, rate_at, rates_by_level
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.recommend.test_duration import promised

PRIOR = PriorPredictor(catalogue=CATALOGUE)
COMPUTE_S, TOKENS = 1.612, 4096  # of the example: a step of two GPUs


def config(tuning: str, gpu_model: str = "A100-SXM4-80GB", gpus: int = 2, **more: Any) -> Config:
    return Config(
        model_name="llama3.1-8b", tuning=tuning, gpu_model=gpu_model, number_gpus=gpus,
        tokens_per_sample=TOKENS, per_device_batch_size=1, precision="bfloat16", lora_r=16,
        target_modules=ALL_LINEAR, sharding="fsdp" if tuning == "full" else "ddp", **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tuning", "gigabytes", "expected"),
    [("full", 24.09, [2386, 1454, 1314, 1132, 955]), ("lora", 0.168, [2540, 2528, 2525, 2519, 2512])],
)
def test_the_worked_example(tuning: str, gigabytes: float, expected: list[int]) -> None:
    c = columns([config(tuning)], CATALOGUE)
    assert c.link_bytes_s[0] == pytest.approx(230e9, rel=0.01)
    rates = []
    for link in (c.link_bytes_s[0], *PCIE_BYTES_S.values()):
        within, across = cost_model.network_times(replace(c, link_bytes_s=0 * c.link_bytes_s + link))
        exchanged_s = within[0] - 2 * cost_model.HOP_S  # the example has no latency
        assert exchanged_s * link == pytest.approx(gigabytes * 1e9, rel=0.01)
        assert not across.any()
        rates.append(TOKENS / (COMPUTE_S + exchanged_s))
    assert rates == pytest.approx(expected, rel=0.002)


def by_level(x: Config, measured: Mapping[str, float] | None = None) -> dict[str, float]:
    c = columns([x], CATALOGUE)
    [found] = rates_by_level(PRIOR, [x], c, PRIOR.physics(c), [measured or {}])
    return found


def test_full_training_loses_apart_and_adapters_hardly() -> None:
    full, lora = by_level(config("full")), by_level(config("lora"))
    assert list(full) == ["nvlink", "pcie", "numa", "socket", "node"]
    assert sorted(full.values(), reverse=True) == list(full.values())
    assert full["node"] < 0.6 * full["nvlink"]
    assert lora["node"] > 0.95 * lora["nvlink"]


def test_a_model_without_nvlink_has_the_levels_of_its_bus() -> None:
    found = by_level(config("full", "L40S"))
    assert list(found) == ["pcie", "numa", "socket", "node"]
    assert rate_at(found, "nvlink") == found["pcie"]
    assert rate_at({}, "nvlink") is None


def test_what_the_nodes_measured_replaces_what_is_stated_of_the_bus() -> None:
    """By physics: twice the bytes a second take half the time of what is exchanged."""
    stated, x = by_level(config("full")), config("full")
    measured = by_level(x, {"numa": PCIE_BYTES_S["node"], "node": PCIE_BYTES_S["numa"], "nvlink": 1e9})
    assert measured["numa"] == pytest.approx(stated["node"])
    assert measured["node"] == pytest.approx(stated["numa"])
    assert {level: measured[level] for level in ("nvlink", "pcie", "socket")} == {
        level: stated[level] for level in ("nvlink", "pcie", "socket")
    }


def test_slots_and_unknown_links_have_the_levels_that_were_measured() -> None:
    slots = replace(config("lora"), gpu_model="cpu", precision="float32")
    assert list(by_level(slots, {"numa": 1e9, "node": 1e8})) == ["numa", "node"]
    assert by_level(replace(slots, number_gpus=1), {"numa": 1e9}) == {}


@pytest.mark.parametrize("gpus", [{"gpus": 1}, {"gpus": 2, "number_nodes": 2}, {"gpu_model": "cpu"}])
def test_one_gpu_a_node_and_cpu_slots_have_no_levels(gpus: dict[str, Any]) -> None:
    assert by_level(config("lora", **gpus)) == {}


def test_a_start_further_apart_is_promised_its_own_pace() -> None:
    near = replace(
        promised(Interval(10.0, 5.0, 20.0), Interval(200.0, 100.0, 400.0)),
        by_level={"nvlink": 200.0, "node": 100.0},
    )
    far = duration.at_level(near, "node", None)
    assert far.tokens_per_second == Interval(100.0, 50.0, 200.0)
    trained_s = near.duration_s.value - 10.0 - 1.0
    assert far.duration_s.value == pytest.approx(10.0 + 2 * trained_s + 1.0)
    assert far.duration_s.low is not None
    assert far.duration_s.low < far.duration_s.value
    assert duration.at_level(far, "nvlink", None).tokens_per_second == near.tokens_per_second
    assert duration.at_level(replace(near, by_level={}), "node", None) == replace(near, by_level={})
