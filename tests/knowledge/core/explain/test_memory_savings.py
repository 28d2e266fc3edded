"""Changes that save memory, and how much: by the terms that say where the memory goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.types import Config, GpuPool, MemorySaving, Unsupported
from knowledge.core.explain.memory_savings import memory_savings
from knowledge.core.predict.memory_parts import memory_parts
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.predict.test_memory_parts import learnt, option

GPU = "A100-SXM4-80GB"
LORA = Config(
    model_name="llama3.1-8b",
    tuning="lora",
    gpu_model=GPU,
    number_gpus=2,
    tokens_per_sample=2048,
    per_device_batch_size=8,
    precision="bfloat16",
    lora_r=128,
    optimizer_state="adamw-fp32",
    gradient_checkpointing=False,
    sharding="ddp",
    chunked_loss=True,
)
POOL = GpuPool(gpu_model=GPU, node_sizes=(2,), memory_bytes=80 << 30)


def peak(config: Config) -> float:
    return float(cost_model.memory(columns([config], CATALOGUE)).total[0])


def savings(config: Config, *pools: GpuPool) -> tuple[MemorySaving, ...]:
    return memory_savings(option(config, peak(config)), {}, CATALOGUE, pools or (POOL,))


@pytest.mark.parametrize(
    "changes",
    [
        {"gradient_checkpointing": True},
        {"per_device_batch_size": 4, "gradient_accumulation_steps": 2},
        {"tokens_per_sample": 1024},
        {"tuning": "qlora", "quantization": "bnb-4bit"},
        {"lora_r": 64},
        {"sharding": "fsdp"},
    ],
)
def test_a_saving_is_the_difference_of_both_peaks(changes: dict[str, Any]) -> None:
    reported = {tuple(saving.changes): saving for saving in savings(LORA)}
    found = reported.pop(tuple(changes))
    assert found.changes == {name: (getattr(LORA, name), value) for name, value in changes.items()}
    assert found.saved_bytes == pytest.approx(peak(LORA) - peak(replace(LORA, **changes)))
    assert len(reported) == 5


def test_savings_are_told_largest_first_and_leave_something() -> None:
    reported = [saving.saved_bytes for saving in savings(LORA)]
    assert reported == sorted(reported, reverse=True)
    assert 0 < reported[-1] < reported[0] < peak(LORA)


def test_savings_agree_with_the_parts_that_are_told_whatever_was_measured() -> None:
    known = learnt()
    best = option(LORA, 60e9)
    parts = memory_parts(best, known, CATALOGUE)
    found = memory_savings(best, known, CATALOGUE, ())
    reported = {tuple(saving.changes): saving.saved_bytes for saving in found}
    of_rank = reported["lora_r",] - parts["adapters"] / 2  # what is left are activations within adapters
    assert 0 < of_rank < 0.01 * parts["activations"]
    assert reported["gradient_checkpointing",] < parts["activations"]


def test_what_cannot_be_done_or_is_done_already_is_not_told() -> None:
    small = replace(
        LORA, number_gpus=1, sharding="none", gradient_checkpointing=True, per_device_batch_size=1,
        tokens_per_sample=200, lora_r=1,
    )  # fmt: skip
    lacking = replace(POOL, cannot_train={"qlora": Unsupported(why="no bitsandbytes")})
    assert [tuple(saving.changes) for saving in savings(small)] == [("tuning", "quantization")]
    assert savings(small, lacking) == ()
    tiny = replace(small, model_name="builtin/tiny-llama", gpu_model="cpu", precision="float32")
    assert savings(tiny) == ()


def test_of_all_weights_an_adapter_saves_most_and_three_samples_become_one() -> None:
    full = replace(LORA, tuning="full", lora_r=None, per_device_batch_size=3, gradient_accumulation_steps=2)
    most, *rest = savings(full)
    assert most.changes == {"tuning": ("full", "lora")}
    smaller = next(saving for saving in rest if "per_device_batch_size" in saving.changes)
    assert smaller.changes == {"per_device_batch_size": (3, 1), "gradient_accumulation_steps": (2, 6)}
