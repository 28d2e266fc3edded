"""LLMFineTuningBench's rows beyond their plain columns."""

from __future__ import annotations

import pytest

from knowledge.core.data.measurement import Measurement
from knowledge.core.data.sources import lfb
from knowledge.core.data.sources.table import BadTable
from tests.knowledge.conftest import CATALOGUE

PLAIN = {
    "model_name": "llama3.1-8b",
    "method": "full",
    "gpu_model": "NVIDIA-A100-SXM4-80GB",
    "number_nodes": "2",
    "number_gpus": "16",
    "tokens_per_sample": "1024",
    "batch_size": "64",
    "torch_dtype": "bfloat16",
    "enable_roce": "0",
    "fms_hf_tuning_version": "2.4.0",
    "run_protocol": "full_run",
    "optim": "",
    "gc_use_reentrant": "",
    "is_valid": "1",
    "dataset_tokens_per_second": "38022.6",
    "origin": "page:1",
}


def row(**changed: str) -> Measurement:
    values = PLAIN | changed
    return lfb.parse(",".join(values) + "\n" + ",".join(values.values()) + "\n", CATALOGUE)[0]


def test_the_optimiser_and_the_variant_of_checkpointing_are_read() -> None:
    config = row(optim="paged_adamw_32bit", gc_use_reentrant="1.0").config
    assert (config.optimizer_state, config.reentrant_checkpointing) == ("paged-adamw-fp32", True)
    plain = row().config
    assert (plain.optimizer_state, plain.reentrant_checkpointing) == ("adamw-bf16", None)
    adapter = row(method="lora").config  # whose width is peft's choice
    assert (adapter.optimizer_state, adapter.gradient_accumulation_steps) == (None, 4)
    assert row(gc_use_reentrant="0.0").config.reentrant_checkpointing is False


def test_the_complete_data_set_states_them_in_its_identifiers() -> None:
    stated = "optim.paged_adamw_32bit-gradient_checkpointing_use_reentrant.True"
    config = row(identifier=f"model_name.llama3.1-8b-{stated}", experiment_id="SFTTrainer.full").config
    assert (config.optimizer_state, config.reentrant_checkpointing) == ("paged-adamw-fp32", True)


@pytest.mark.parametrize(
    ("changed", "sharding"),
    [
        ({}, "hybrid"),
        ({"optim": "paged_adamw_32bit"}, "fsdp"),
        ({"fms_hf_tuning_version": "2.7.1"}, "fsdp"),
        ({"number_gpus": "8"}, "fsdp"),
        ({"number_nodes": "1", "number_gpus": "8"}, "fsdp"),
        ({"number_nodes": "1", "number_gpus": "1"}, "none"),
    ],
)
def test_one_campaign_sharded_within_nodes_alone(changed: dict[str, str], sharding: str) -> None:
    assert row(**changed).config.sharding == sharding


@pytest.mark.parametrize(("stated", "network"), [("1", "roce"), ("0", "tcp"), ("", None)])
def test_a_network_that_is_not_stated_stays_unknown(stated: str, network: str | None) -> None:
    assert row(enable_roce=stated).config.network == network


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ({}, 4),
        ({"fms_hf_tuning_version": "2.7.1"}, 1),
        ({"gradient_accumulation_steps": "1"}, 1),
        ({"gradient_accumulation_steps": "4", "fms_hf_tuning_version": "2.7.1"}, 4),
    ],
)
def test_accumulation_that_is_not_stated_is_the_actuator_s(changed: dict[str, str], steps: int) -> None:
    found = row(**changed)
    assert found.config.gradient_accumulation_steps == steps
    assert found.effective_batch_size == 64 * steps


@pytest.mark.parametrize(("stated", "held"), [("50", 40 - 0.86), ("99.9", 80.0), ("0.5", 0.0)])
def test_peaks_leave_out_what_the_driver_keeps(stated: str, held: float) -> None:
    share = row(gpu_memory_utilization_peak=stated).peak_memory_fraction
    assert share is not None
    assert 80 * share == pytest.approx(held, abs=0.001)


def test_whether_a_run_was_valid_is_never_guessed() -> None:
    with pytest.raises(BadTable, match="is_valid: is empty"):
        row(is_valid="")
