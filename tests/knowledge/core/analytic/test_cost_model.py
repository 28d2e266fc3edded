"""The worked numbers of the physics prior.

Besides, some properties must hold for every configuration.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.types import Config
from tests.knowledge.conftest import CATALOGUE
from trainer.recipes import DEFAULT_RECIPE, RECIPES, Cost

LLAMA = Config(
    model_name="meta-llama/Llama-3.1-8B",
    tuning="full",
    gpu_model="A100-SXM4-80GB",
    number_gpus=1,
    tokens_per_sample=4096,
    per_device_batch_size=1,
    precision="bfloat16",
    gradient_checkpointing=True,
)
MIXED = replace(LLAMA, optimizer_state="adamw-fp32")
LORA = replace(LLAMA, tuning="lora", lora_r=16, target_modules="all-linear", unquantized_float32=False)


@pytest.mark.parametrize(
    ("config", "total_gb"),
    [
        (MIXED, 165.36),
        (LLAMA, 84.99),
        (replace(MIXED, number_gpus=8, sharding="fsdp"), 35.21),
        (LORA, 26.88),
        (replace(LORA, gradient_checkpointing=False), 54.24),
        (replace(LORA, tuning="qlora"), 16.39),
        (replace(LORA, tuning="qlora", unquantized_float32=True), 21.13),
        (replace(LORA, target_modules="q_proj, v_proj", gradient_checkpointing=False), 45.36),
    ],
)
def test_memory_of_an_8b_model(config: Config, total_gb: float) -> None:
    total = cost_model.memory(columns([config], CATALOGUE)).total[0]
    assert total / 1e9 == pytest.approx(total_gb, abs=0.06)


@pytest.mark.parametrize(
    ("config", "gflop"),
    [
        (LLAMA, 64.33),
        (LORA, 49.32),
        (replace(LORA, gradient_checkpointing=False), 33.24),
        (replace(LORA, tuning="qlora"), 49.32),
    ],
)
def test_flops_per_token_of_an_8b_model(config: Config, gflop: float) -> None:
    assert cost_model.flops_per_token(columns([config], CATALOGUE))[0] / 1e9 == pytest.approx(
        gflop, abs=0.005
    )


def test_adapter_size_of_an_8b_model() -> None:
    assert columns([LORA], CATALOGUE).lora_parameters[0] == 41_943_040


def test_of_a_mixture_of_experts_the_attention_alone_is_adapted() -> None:
    assert columns([replace(LORA, model_name="mixtral-8x7b")], CATALOGUE).lora_parameters[0] == 13_631_488


def test_a_tower_is_held_and_never_trained() -> None:
    full = replace(MIXED, model_name="google/gemma-3-4b-pt")
    for config, bytes_each in ((full, 4.0), (replace(full, tuning="lora"), 2.0)):
        c = columns([config], CATALOGUE)
        bare = cost_model.memory(replace(c, towers=np.zeros(1)))
        assert cost_model.memory(c).total[0] - bare.total[0] == pytest.approx(bytes_each * 419_816_304)


def test_fsdp_step_without_overlap_matches_the_public_measurement() -> None:
    """Physics without overlap comes close to a published measurement.

    8.17B parameters, pure bf16, 8 A100: 2541 tokens/s alone become 2277 (measured 2263).
    """
    compute = 4096 / 2541
    bytes_of_model = np.array([2 * 8.17e9])
    network = cost_model.ring_bytes(np.array([8.0]), bytes_of_model, bytes_of_model) / 230e9
    step = cost_model.step_time(
        np.array([compute]), network, np.array([0.0]), np.array([1.0]), np.array([True]), overlap=1.0
    )
    assert compute == pytest.approx(1.612, abs=0.001)
    assert network[0] == pytest.approx(0.187, abs=0.001)
    assert 4096 / step[0] == pytest.approx(2277, abs=2)


@pytest.mark.parametrize(("billions", "gpus", "rate"), [(13, 2, 165), (20, 4, 77)])
def test_slow_links_dominate_short_batches(billions: float, gpus: float, rate: float) -> None:
    """PCIe 4, 512 tokens a GPU, η_max 0.6, T½ 700."""
    tokens, parameters = np.array([512.0]), billions * 1e9
    compute = tokens * 8 * parameters / (312e12 * cost_model.saturation(tokens, 0.6, 700.0))
    size = np.array([2 * parameters])
    network = cost_model.ring_bytes(np.array([float(gpus)]), size, size) / 16e9
    step = cost_model.step_time(compute, network, np.array([0.0]), np.array([1.0]), np.array([True]))
    assert 512 / step[0] == pytest.approx(rate, abs=1)


CONFIGS = st.builds(
    Config,
    model_name=st.sampled_from(["meta-llama/Llama-3.1-8B", "mixtral-8x7b", "builtin/tiny-llama", "opt-125m"]),
    tuning=st.sampled_from(["full", "lora", "qlora"]),
    gpu_model=st.sampled_from(["A100-SXM4-80GB", "L40S", "cpu"]),
    number_gpus=st.sampled_from([1, 2, 8]),
    tokens_per_sample=st.integers(16, 8192),
    per_device_batch_size=st.integers(1, 64),
    precision=st.sampled_from(["bfloat16", "float32"]),
    gradient_checkpointing=st.booleans(),
)


@given(config=CONFIGS)
@settings(max_examples=60, deadline=None)
def test_memory_grows_with_batch_and_length(config: Config) -> None:
    more = replace(config, per_device_batch_size=config.per_device_batch_size + 1)
    longer = replace(config, tokens_per_sample=config.tokens_per_sample * 2)
    stated = cost_model.memory(columns([config, more, longer], CATALOGUE))
    forward, of_more, of_longer = stated.activations + stated.logits + stated.cached
    assert forward < min(of_more, of_longer)
    here, of_more, of_longer = stated.total  # the same where a step's copies need more than activations
    assert here <= (1 + 1e-12) * min(of_more, of_longer)


@given(config=CONFIGS)
@settings(max_examples=60, deadline=None)
def test_sharding_never_raises_the_memory_of_states_and_rates_are_positive(config: Config) -> None:
    whole, shared = replace(config, sharding="ddp"), replace(config, sharding="fsdp")
    c = columns([whole, shared], CATALOGUE)
    stated = cost_model.memory(c)
    of_whole, of_shared = stated.weights + stated.gradients + stated.optimizer
    assert of_shared <= of_whole
    assert stated.logits[1] == stated.logits[0]
    assert stated.adapters[1] == pytest.approx(stated.adapters[0] / c.shards[1])
    assert (cost_model.throughput(c) > 0).all()


@given(config=CONFIGS, more=st.sampled_from([2, 4, 8]))
@settings(max_examples=40, deadline=None)
def test_sharding_over_more_gpus_never_raises_memory(config: Config, more: int) -> None:
    sharded = replace(config, number_gpus=2, sharding="fsdp")
    few, many = cost_model.memory(columns([sharded, replace(sharded, number_gpus=2 * more)], CATALOGUE)).total
    assert many <= few


@given(config=CONFIGS)
@settings(max_examples=40, deadline=None)
def test_the_same_configuration_has_the_same_figures(config: Config) -> None:
    one, other = columns([config], CATALOGUE), columns([config, config], CATALOGUE)
    assert cost_model.throughput(one)[0] == cost_model.throughput(other)[1]
    assert cost_model.memory(one).total[0] == cost_model.memory(other).total[1]


PAGED = replace(LLAMA, optimizer_state="paged-adamw-fp32")


def test_paged_states_give_way_to_the_rest_and_cost_time_instead() -> None:
    whole, paged = (
        columns([replace(LLAMA, optimizer_state=name)], CATALOGUE)
        for name in ("adamw-fp32", PAGED.optimizer_state)
    )
    assert cost_model.fits(whole)[0] < 1 <= cost_model.fits(paged)[0] * 1.0001
    moved = cost_model.paging_bytes(paged)[0]
    assert moved == pytest.approx(2 * 8 * 8.03e9, rel=0.01)  # both moments, in float32
    assert cost_model.paging_bytes(whole)[0] == 0


def test_paged_states_that_fit_stay_where_they_are() -> None:
    config = replace(PAGED, number_gpus=8, sharding="fsdp")
    c = columns([config], CATALOGUE)
    assert cost_model.paging_bytes(c)[0] == 0
    mixed = columns([replace(config, optimizer_state="adamw-fp32")], CATALOGUE)
    paged, held = cost_model.memory(c), cost_model.memory(mixed)
    assert (paged.total - paged.copies)[0] == pytest.approx((held.total - held.copies)[0])


def test_what_fsdp_shards_is_kept_in_float32_but_for_experts_that_gpus_share() -> None:
    mixture = replace(LLAMA, model_name="mistralai/Mixtral-8x7B-v0.1", optimizer_state=None, number_gpus=8)
    one, shared = columns(
        [replace(mixture, expert_parallel=degree) for degree in (1, 8)], CATALOGUE
    ).state_bytes
    assert (one, shared) == (16, 8)
    alone, unstated = columns(
        [replace(LLAMA, optimizer_state=None), replace(mixture, precision=None)], CATALOGUE
    ).state_bytes
    assert (alone, unstated) == (8, 8)


def test_a_run_whose_states_no_gpu_has_room_for_must_have_paged_them() -> None:
    unstated = replace(LLAMA, optimizer_state=None, gpu_model="L40S", number_gpus=2, sharding="fsdp")
    c = columns(
        [unstated, replace(unstated, number_gpus=4), replace(unstated, optimizer_state="adamw-fp32")],
        CATALOGUE,
    )
    assert cost_model.paging_bytes(c) == pytest.approx([8 * 8.03e9, 0, 0], rel=0.01)  # moments in float32


def test_gpus_of_one_rack_exchange_over_its_links_however_many_nodes_they_are() -> None:
    rack = replace(LLAMA, gpu_model="GB200-186GB", number_gpus=72, number_nodes=18, sharding="fsdp")
    c = columns(
        [rack, replace(rack, number_gpus=144, number_nodes=36), replace(rack, gpu_model="B200")], CATALOGUE
    )
    inside, across = cost_model.network_times(c)
    assert (inside > 0).tolist() == [True, False, False]
    assert (across > 0).tolist() == [False, True, True]


def test_hybrid_shards_need_the_memory_of_one_node_and_little_of_the_network() -> None:
    whole = replace(LLAMA, number_gpus=32, number_nodes=4, sharding="fsdp", network="tcp")
    hybrid = replace(whole, sharding="hybrid")
    node = replace(whole, number_gpus=8, number_nodes=1)
    there, spread, here = tables = [columns([x], CATALOGUE) for x in (hybrid, whole, node)]
    held = [cost_model.memory(c).total[0] - cost_model.memory(c).communicators[0] for c in tables]
    assert held[0] == pytest.approx(held[2])
    assert held[0] > held[1]
    inside, across = cost_model.network_times(there)
    assert inside[0] == cost_model.network_time(here)[0]
    assert across[0] < 0.6 * cost_model.network_time(spread)[0]
    adapters = columns([replace(hybrid, tuning="lora")], CATALOGUE)
    assert cost_model.network_times(adapters)[1][0] < 0.1


def test_our_trainer_holds_logits_of_some_positions_only() -> None:
    whole = replace(LORA, tokens_per_sample=8192)
    stated = cost_model.memory(columns([whole, replace(whole, chunked_loss=True)], CATALOGUE)).logits
    assert stated[0] == 14 * 128_256 * 8192
    assert stated[1] == pytest.approx(2**29, rel=0.01)
    short = replace(whole, tokens_per_sample=64, precision="float32")
    alike = cost_model.memory(columns([short, replace(short, chunked_loss=True)], CATALOGUE)).logits
    assert alike[0] == alike[1]


def test_logits_in_16_bits_have_a_block_of_their_own_and_scaled_ones_another() -> None:
    """By words and tokens; what an allocator keeps of a real loss: `benchmarks/trainer/reserved.py`."""
    whole = replace(LORA, tokens_per_sample=8192)
    granite = replace(whole, model_name="ibm-granite/granite-3.1-8b-instruct")
    asked = [whole, replace(whole, precision="float32"), granite, replace(granite, chunked_loss=True)]
    c = columns(asked, CATALOGUE)
    each = cost_model.memory(c).logits / (c.vocab * c.peak_tokens)
    assert each[:3].tolist() == [14, 12, 16]
    assert each[3] < 2


def test_counting_tokens_predicted_right_copies_logits_handed_out_in_float32() -> None:
    """TRL copies all but each sample's last position, which moves nothing of a single sample."""
    mixture = "ibm-granite/granite-3.1-3b-a800m-instruct"
    two = replace(LORA, tokens_per_sample=2048, per_device_batch_size=2)
    asked = [
        replace(two, model_name=name, software=software, per_device_batch_size=batch)
        for name in (mixture, LORA.model_name)
        for software in ("3.0.0", "fms-hf-tuning 2.8.2", "2.7.1", None)
        for batch in (1, 2)
    ]
    c = columns(asked, CATALOGUE)
    each = cost_model.memory(c).logits / (c.vocab * c.peak_tokens)
    assert each[:8].tolist() == [16, 20, 16, 20, 16, 16, 16, 16]
    assert set(each[8:]) == {14}


def test_our_trainer_computes_float32_in_full_and_others_may_use_tf32() -> None:
    other = replace(LLAMA, gpu_model="H100-SXM5-80GB", precision="float32")
    ours = replace(other, optimizer_state="adamw-fp32", chunked_loss=True)
    slot = replace(ours, gpu_model="cpu")
    c = columns([other, ours, replace(ours, precision="bfloat16"), slot], CATALOGUE)
    assert c.peak[:3] == pytest.approx([494.7e12, 67e12, 989.4e12])
    assert c.peak[3] == columns([replace(other, gpu_model="cpu")], CATALOGUE).peak[0]


def test_a_recipe_of_pairs_costs_twice_the_rows_and_one_more_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = replace(DEFAULT_RECIPE, name="pairs", cost=Cost(sequences=2, forwards=1.0))
    monkeypatch.setitem(RECIPES, "pairs", pairs)
    one, two, paired = (
        columns([config], CATALOGUE)
        for config in (
            LLAMA,
            replace(LLAMA, per_device_batch_size=2 * LLAMA.per_device_batch_size),
            replace(LLAMA, recipe="pairs"),
        )
    )
    assert cost_model.memory(paired).total == pytest.approx(cost_model.memory(two).total)
    assert paired.micro_tokens == pytest.approx(2 * one.micro_tokens)
    assert cost_model.flops_per_token(paired)[0] > 1.2 * cost_model.flops_per_token(one)[0]
