"""One model shared by two processes: what it learns, who reads it, what it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trainer.runs import Run

pytestmark = pytest.mark.torch
FULL = {"tuning": "full", "lora_r": None, "lora_alpha": None, "learning_rate": 1e-3}


@pytest.mark.parametrize(
    "model", ["builtin/tiny-llama", pytest.param("builtin/tiny-qwen", marks=pytest.mark.slow)]
)
def test_two_processes_that_share_a_model_train_all_of_it_like_one(run: Run, model: str):
    import torch
    from transformers import AutoModelForCausalLM

    run.model = model
    run.params |= FULL | {"gradient_checkpointing": True, "gradient_accumulation_steps": 2, "max_steps": 4}
    alone = Run(run.path.with_name("alone"), run.models_dir, {**run.params}, model)
    run.slots, run.params["sharding"], run.params["per_device_batch_size"] = 2, "fsdp", 2
    assert run.write().finish() == 0, run.result["reason"]
    alone.write().train()
    assert run.losses == pytest.approx(alone.losses, rel=1e-4)
    shared, own = (
        AutoModelForCausalLM.from_pretrained(one.path / "output", local_files_only=True)
        for one in (run, alone)
    )
    pairs = zip(shared.parameters(), own.parameters(), strict=True)
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in pairs)


@pytest.mark.slow
def test_adapters_in_float32_on_a_bfloat16_base_are_sharded_with_gradient_checkpointing(run: Run):
    run.params |= {"precision": "bfloat16", "gradient_checkpointing": True, "per_device_batch_size": 2}
    run.slots, run.params["sharding"], run.checkpoint_every_s = 2, "fsdp", 0.0
    assert run.write().finish() == 0, run.result["reason"]
    assert run.result["final_loss"] < run.result["first_loss"]
    again = Run(run.path.with_name("again"), run.models_dir, run.params, slots=2)
    assert again.write(resume=run.path / "checkpoints" / "step-5").finish() == 0
    assert again.result["final_loss"] == run.result["final_loss"]


@pytest.mark.slow
@pytest.mark.parametrize("tuning", ["lora", "full"])
def test_random_weights_are_made_in_shards(run: Run, tuning: str):
    from tests.trainer.train.base.test_torch_random_weights import TINY

    run.model, run.node = "random/some/model", {"shape": TINY}
    run.params |= {"tuning": tuning, "max_steps": 3, "sharding": "fsdp", "per_device_batch_size": 2}
    run.params |= {"lora_r": None, "lora_alpha": None} if tuning == "full" else {}
    run.slots = 2
    assert run.write().finish() == 0, run.result["reason"]
    assert run.result["tokens_per_s"] > 0
    assert 7 < run.result["first_loss"] < 10  # ln(4000) = 8.3: all of the model has usual weights


@pytest.mark.parametrize("name", ["builtin/tiny-llama", "builtin/tiny-qwen"])
def test_a_model_without_weights_takes_no_memory_and_has_its_buffers(name: str, models_dir: Path):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    from trainer import builtin
    from trainer.train.distributed.sharding import named_weights, skeleton

    logging.disable_progress_bar()
    folder = builtin.ensure(name, models_dir)
    empty = skeleton(AutoConfig.from_pretrained(folder), torch.bfloat16)
    real = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    assert all(weight.is_meta for weight in empty.parameters())
    assert named_weights(empty).keys() == named_weights(real).keys()
    buffers = dict(real.named_buffers())
    assert buffers
    assert all(torch.equal(buffer, buffers[name]) for name, buffer in empty.named_buffers())


@pytest.mark.parametrize("facts", [True, False])
def test_each_layer_is_a_unit_of_its_own_also_under_an_adapter(
    models_dir: Path, facts: bool, monkeypatch: pytest.MonkeyPatch
):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoConfig

    from trainer import builtin
    from trainer.train.distributed.sharding import blocks, skeleton

    config = AutoConfig.from_pretrained(builtin.ensure("builtin/tiny-llama", models_dir))
    model = skeleton(config, torch.bfloat16)
    if not facts:
        monkeypatch.setattr(model, "_no_split_modules", None)
    adapted = get_peft_model(model, LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM"))
    found = blocks(adapted)
    assert len(found) == config.num_hidden_layers
    assert {type(block).__name__ for block in found} == {"LlamaDecoderLayer"}


def test_only_one_process_keeps_gathered_weights():
    import torch

    from trainer.train import checkpoint_state

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert checkpoint_state.weights(model, keep=True).keys() == {"weight", "bias"}
    assert (
        len(checkpoint_state.moments(model, optimizer, keep=True)) == 6
    )  # of each weight: two moments, and its steps
    assert (
        checkpoint_state.weights(model, keep=False)
        == checkpoint_state.moments(model, optimizer, keep=False)
        == {}
    )
