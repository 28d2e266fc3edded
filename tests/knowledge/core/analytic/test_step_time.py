"""Physics fitted to measured steps.

The tests also cover how far the fit is trusted for models and GPUs never seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from knowledge.core.analytic import cost_model, overheads
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.analytic.step_time import StepTime, stated_rate, step_parts, step_seconds, step_tokens
from knowledge.core.data.sources import registry
from knowledge.core.data.splits import Dataset, by_gpu, by_model
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from knowledge.core.model import features
from knowledge.core.model.regressor import Regressor
from knowledge.core.model.training_support import TrainingSupport
from tests.knowledge.conftest import CATALOGUE

MODELS = ("llama3.2-1b", "llama3.2-3b", "mistral-7b-v0.1", "llama3.1-8b")
BASE = Config(
    model_name=MODELS[0],
    tuning="lora",
    gpu_model="A100-SXM4-80GB",
    number_gpus=1,
    tokens_per_sample=512,
    per_device_batch_size=1,
    precision="bfloat16",
)
CONFIGS = [
    replace(BASE, model_name=model, gpu_model=gpu, number_gpus=gpus, per_device_batch_size=batch)
    for model in MODELS
    for gpu in ("A100-SXM4-80GB", "L40S")
    for gpus in (1, 4)
    for batch in (1, 2, 4, 8)
]
NONE = np.zeros(len(CONFIGS), dtype=bool)


def _stated(c: ConfigTable) -> Array:
    return np.ones(sum(part.shape[1] for part in step_parts(c)))


def test_short_steps_of_sharded_adapters_last_as_long_as_the_host_needs() -> None:
    one, four = (columns([replace(BASE, number_gpus=gpus)], CATALOGUE) for gpus in (1, 4))
    alone, sharded = (step_seconds(step_parts(c), _stated(c))[0] for c in (one, four))
    assert sharded > 3 * alone
    longer = columns([replace(BASE, number_gpus=4, per_device_batch_size=2)], CATALOGUE)
    assert step_seconds(step_parts(longer), _stated(longer))[0] < 1.1 * sharded


def test_plain_layers_start_fewer_operations_and_adapters_add_some() -> None:
    short = replace(BASE, tokens_per_sample=64)
    gated, plain = replace(short, model_name="granite-7b-base"), replace(short, model_name="granite-13b-v2")
    full = replace(gated, tuning="full")
    c = columns([gated, plain, full], CATALOGUE)
    host = step_parts(c)[1].sum(axis=1) / (c.layers * np.array([3, 3, 4]))
    assert host[1] < 0.5 * host[0]
    assert host[0] == pytest.approx(1.5 * host[2], rel=0.1)


def test_weights_are_recovered_from_steps_that_follow_them() -> None:
    c = columns(CONFIGS, CATALOGUE)
    weights = np.exp(np.random.default_rng(0).normal(0.0, 0.5, len(_stated(c))))
    measured = step_tokens(c) / step_seconds(step_parts(c), weights)
    found = StepTime().fit(c, measured, [config_space.config_hash(x) for x in CONFIGS])
    assert np.max(np.abs(np.log(found.value(c) / measured))) < 0.1


def test_few_rows_leave_the_stated_weights_nearly_as_they_are() -> None:
    c = columns(CONFIGS[:2], CATALOGUE)
    stated = step_tokens(c) / step_seconds(step_parts(c), _stated(c))
    found = StepTime().fit(c, 1.5 * stated, ["a", "b"])
    assert np.all((found.weights_ > 0.5) & (found.weights_ <= 1.0 + 1e-9))


def test_a_gpu_that_was_never_seen_gets_a_wider_interval_and_physics_alone_where_few_are_known() -> None:
    c = columns(CONFIGS, CATALOGUE)
    slow = np.array([0.3 if x.gpu_model == "L40S" else 1.0 for x in CONFIGS])
    rates = step_tokens(c) / step_seconds(step_parts(c), _stated(c)) * slow
    X = features.matrix(CONFIGS, c, {})
    found = Regressor(StepTime).fit(Dataset(CONFIGS, c.identities(CONFIGS), c, X, rates))
    assert np.all(found.width(CONFIGS, NONE, ~NONE) >= found.width(CONFIGS, NONE, NONE))
    assert not found.believed_["gpu"]
    physics = found.physics_.value(c)
    assert found.predict(CONFIGS, c, X, NONE, ~NONE) == pytest.approx(physics)
    assert np.median(np.abs(np.log(found.predict(CONFIGS, c, X, NONE, NONE) / rates))) < 0.05


def test_a_handful_of_runs_makes_no_gpu_known() -> None:
    kept = [x for x in CONFIGS if x.gpu_model != "L40S"] + [x for x in CONFIGS if x.gpu_model == "L40S"][:4]
    c = columns(kept, CATALOGUE)
    rates = step_tokens(c) / step_seconds(step_parts(c), _stated(c))
    X = features.matrix(kept, c, {})
    found = Regressor(StepTime).fit(Dataset(kept, c.identities(kept), c, X, rates))
    none = np.zeros(len(kept), dtype=bool)
    few = np.array([x.gpu_model == "L40S" for x in kept])
    width = found.width(kept, none, none)
    assert np.all(width[few] == found.width(kept, none, ~none)[few])
    assert np.all(width[~few] < width[few].min())


def test_physics_of_a_gpu_with_a_handful_of_runs_is_fitted_without_them() -> None:
    kept = [x for x in CONFIGS if x.gpu_model != "L40S"] + [x for x in CONFIGS if x.gpu_model == "L40S"][:4]
    c, few = columns(kept, CATALOGUE), np.array([x.gpu_model == "L40S" for x in kept])
    rates = step_tokens(c) / step_seconds(step_parts(c), _stated(c)) * np.where(few, 0.3, 1.0)
    X, none = features.matrix(kept, c, {}), np.zeros(len(kept), dtype=bool)
    data = Dataset(kept, c.identities(kept), c, X, rates)
    found = Regressor(StepTime).fit(data).predict(kept, c, X, none, none)
    assert np.all(found[few] > 2 * rates[few])


@pytest.mark.parametrize("by", [by_model, by_gpu])
def test_no_fold_parts_a_group(by) -> None:  # type: ignore[no-untyped-def]
    names = {by_model: lambda x: x.model_name, by_gpu: lambda x: x.gpu_model}
    for train, test in by(CONFIGS):
        kept, left = ({names[by](CONFIGS[row]) for row in rows} for rows in (train, test))
        assert kept
        assert left
        assert not kept & left


def test_samples_shared_by_gpus_keep_the_batch_of_the_log() -> None:
    text = (
        "global_batch_size,accelerator_model_name,total_accelerators,samples_per_second,framework,"
        "gradient_accumulation_steps,number_of_nodes\n8,NVIDIA H100-SXM5-80GB,64,10.5,NeMo,1,8\n"
    )
    config = registry.parse(text, CATALOGUE)[0].config
    assert (config.model_parallel, config.per_device_batch_size, config.effective_batch_size) == (8, 1, 8)
    assert columns([config], CATALOGUE).micro_tokens[0] == 1024


def test_what_one_model_showed_of_a_gpu_is_no_word_on_others_there() -> None:
    there, elsewhere = replace(BASE, gpu_model="L40S"), replace(BASE, model_name=MODELS[1])
    seen = TrainingSupport.of([BASE, there, elsewhere], columns([BASE, there, elsewhere], CATALOGUE))
    other, same = replace(there, model_name=MODELS[2]), replace(there, model_name="meta-llama/Llama-3.2-1B")
    queries = [BASE, there, elsewhere, other, same]
    unseen = seen.unseen_gpu(queries, columns(queries, CATALOGUE))
    assert unseen.tolist() == [False, False, False, True, False]


def test_adapters_of_our_trainer_are_slower_by_what_autocast_adds_and_no_others_are() -> None:
    ours = replace(BASE, chunked_loss=True, optimizer_state="adamw-fp32", target_modules="all-linear")
    full, cpu = replace(ours, tuning="full"), replace(ours, gpu_model="cpu")
    c = columns([ours, replace(ours, per_device_batch_size=8), full, BASE, cpu], CATALOGUE)
    device, host, _ = overheads.of_autocast(c)
    assert (
        host[0]
        == host[1]
        == pytest.approx(overheads.passes(c)[0] * c.layers[0] * c.adapters[0] * overheads.AUTOCAST_ADAPTER_S)
    )
    assert device[1] == pytest.approx(8 * device[0])
    assert not device[2:].any()
    assert not host[2:].any()


def test_rates_by_physics_alone_know_that_a_gpu_waits_for_its_host() -> None:
    """Measured on an H100 (docs/measurements): 32,186 and 11,059 tokens/s of Qwen2.5 with 0.5B."""
    small = Config(
        model_name="Qwen/Qwen2.5-0.5B", tuning="lora", gpu_model="H100-SXM5-80GB", number_gpus=1, lora_r=16,
        tokens_per_sample=1024, per_device_batch_size=2, precision="bfloat16", gradient_checkpointing=False,
        sharding="none", network="none", **OUR_TRAINER,
    )  # fmt: skip
    large = replace(small, per_device_batch_size=16, lora_r=8, gradient_checkpointing=True)
    found = stated_rate(columns([small, large], CATALOGUE))
    assert found == pytest.approx([11_059, 32_186], rel=0.35)
    assert cost_model.throughput(columns([small], CATALOGUE))[0] > 3 * 11_059


THREE_OF_THREE = {"per_device_batch_size": 3, "gradient_accumulation_steps": 3}


@pytest.mark.parametrize(
    ("model", "changed", "measured"),
    [
        ("deepseek-ai/deepseek-coder-1.3b-base", THREE_OF_THREE, 24_057),
        ("TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T", {}, 8_638),
        ("Qwen/Qwen1.5-4B", {"gradient_checkpointing": True}, 2_115),
    ],
)
def test_a_backward_pass_that_computes_nothing_again_needs_less_of_the_host(
    model: str, changed: dict[str, Any], measured: int
) -> None:
    """All weights on an H100, whose steps wait for the host (docs/measurements)."""
    config = Config(
        model_name=model, tuning="full", gpu_model="H100-SXM5-80GB", number_gpus=1, tokens_per_sample=768,
        per_device_batch_size=1, precision="bfloat16", gradient_checkpointing=False, sharding="none",
        network="none", **OUR_TRAINER,
    )  # fmt: skip
    assert stated_rate(columns([replace(config, **changed)], CATALOGUE)) == pytest.approx([measured], rel=0.2)


def test_cpus_keep_the_rates_of_the_prior() -> None:
    c = columns([replace(CONFIGS[0], gpu_model="cpu", number_gpus=1, sharding="none")], CATALOGUE)
    assert stated_rate(c) == pytest.approx(cost_model.throughput(c))
