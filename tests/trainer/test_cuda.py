"""Behaviour that only a GPU can show.

The tests are collected on machines that have one, with torch for CUDA and bitsandbytes.
"""

from __future__ import annotations

import threading

import pytest

from tests.trainer.runs import Run
from trainer.agent.node.gpu_idle import await_vacancy, busy
from trainer.agent.node.gpus import find_gpus
from trainer.agent.node.torch_check import check_torch

pytestmark = pytest.mark.torch
GIB = 2**30
WIDE = {
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 128_000,
    "max_position_embeddings": 4096,
}


def test_the_agent_offers_gpus_that_torch_can_use_and_nobody_holds():
    gpus = find_gpus(0)
    assert gpus
    assert all(gpu.memory_bytes > GIB and gpu.uuid.startswith("GPU-") for gpu in gpus)
    check_torch(gpus, None)
    await_vacancy(lambda: busy(gpus), threading.Event())


@pytest.mark.parametrize(
    ("tuning", "precision"),
    [
        ("lora", "bfloat16"),
        ("lora", "float16"),
        ("full", "bfloat16"),
        ("full", "float32"),
        ("qlora", "bfloat16"),
    ],
)
def test_a_training_learns_measures_and_resumes(run: Run, tuning: str, precision: str):
    run.device, run.checkpoint_every_s = "cuda", 0.0
    run.params |= {"tuning": tuning, "precision": precision, "gradient_checkpointing": True}
    run.params |= {"lora_r": None, "lora_alpha": None, "learning_rate": 1e-3} if tuning == "full" else {}
    assert run.write().finish() == 0, run.result["reason"]
    result = run.result
    assert result["final_loss"] < result["first_loss"]
    assert 0 < result["peak_memory_bytes"] <= result["memory_capacity_bytes"]
    again = Run(run.path.with_name("again"), run.models_dir, run.params, device="cuda")
    assert again.write(resume=run.path / "checkpoints" / "step-5").finish() == 0
    assert again.result["final_loss"] == pytest.approx(result["final_loss"], rel=1e-2)


@pytest.mark.parametrize("tuning", ["lora", "qlora"])
def test_random_weights_are_measured_on_the_gpu(run: Run, tuning: str):
    run.device, run.model, run.node = "cuda", "random/wide", {"shape": WIDE}
    run.params |= {"tuning": tuning, "precision": "bfloat16", "max_steps": 3}
    assert run.write().finish() == 0, run.result["reason"]
    assert run.result["tokens_per_s"] > 0


def test_float32_does_not_hold_all_scores_where_heads_share_keys(run: Run):
    """They would take 4 GiB for each layer in work, and as much again on their way back."""
    run.device, run.model, run.node = "cuda", "random/wide", {"shape": {**WIDE, "num_key_value_heads": 4}}
    run.params |= {"tokens_per_sample": 4096, "gradient_checkpointing": True, "max_steps": 2}
    assert run.write(rows=[{"prompt": "x", "completion": "y" * 5000}]).finish() == 0, run.result["reason"]
    assert run.result["peak_memory_bytes"] < 5.5 * GIB


def test_a_gpu_that_is_too_small_is_out_of_memory_and_no_error(run: Run):
    run.device, run.model, run.node = "cuda", "random/wide", {"shape": WIDE}
    run.params |= {"precision": "bfloat16", "tokens_per_sample": 2048, "per_device_batch_size": 1024}
    assert run.write(rows=[{"prompt": "x", "completion": "y" * 3000}]).finish() == 76
    assert run.result["outcome"] == "oom"
    assert run.result["peak_memory_bytes"] > GIB
