"""Trainings of a second, in this process: losses, outputs, figures, readable reasons."""

from __future__ import annotations

import csv
import io
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.runs import ROWS, Run
from trainer.checkpoint import digest, newest

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("tuning", ["lora", "full"])
@pytest.mark.parametrize("model", ["builtin/tiny-llama", "builtin/tiny-qwen"])
def test_the_loss_falls(run: Run, tuning: str, model: str):
    run.model = model
    run.params.update(tuning=tuning, max_steps=12)
    result = run.write().train()
    assert result["outcome"] == "succeeded", result["reason"]
    assert result["final_loss"] < 0.8 * result["first_loss"]
    assert (result["step"], result["total_steps"], result["exit_code"]) == (12, 12, 0)


def test_the_norm_of_the_gradient_is_told_as_it_was_before_clipping(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    import torch

    clipped: list[tuple[float, float]] = []
    clip = torch.nn.utils.clip_grad_norm_

    def watched(weights: list[Any], most: float) -> Any:
        squares = [weight.grad.float().pow(2).sum() for weight in weights if weight.grad is not None]
        reported = clip(weights, most)
        after = [weight.grad.float().pow(2).sum() for weight in weights if weight.grad is not None]
        clipped.append((float(sum(squares)) ** 0.5, float(sum(after)) ** 0.5))
        return reported

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", watched)
    run.write().train()
    norms = [event["gradient_norm"] for event in run.events("step")]
    assert norms == pytest.approx([before for before, _ in clipped], rel=1e-4)
    assert max(after for _, after in clipped) <= 1.0 + 1e-4 < max(norms)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_with_gradient_checkpointing_and_accumulation(run: Run, precision: str):
    run.params.update(precision=precision, gradient_checkpointing=True)
    run.params.update(per_device_batch_size=2, gradient_accumulation_steps=2)
    run.write().train()
    half = run.losses
    exact = Run(run.path.with_name("exact"), run.models_dir)
    exact.write().train()
    assert half == pytest.approx(exact.losses, rel=0.01)


VARIED = [{**row, "completion": row["completion"] * (1 + number % 4)} for number, row in enumerate(ROWS)]


def test_the_order_within_a_step_saves_padding_and_changes_nothing_that_is_learnt(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    from trainer.train.plan import StepPlan

    def as_read(plan: StepPlan, step: int, rank: int = 0, size: int = 1) -> list[list[int]]:
        rows = plan.rows(step)
        return [rows[start : start + plan.micro] for start in range(0, plan.batch, plan.micro)][rank::size]

    run.params.update(per_device_batch_size=2, gradient_accumulation_steps=4)
    sorted_rows = run.write(rows=VARIED, validation=VARIED[:5]).train()
    plain = Run(run.path.with_name("plain"), run.models_dir, params=run.params)
    monkeypatch.setattr(StepPlan, "micro_batches", as_read)
    unsorted_rows = plain.write(rows=VARIED, validation=VARIED[:5]).train()
    assert run.losses == pytest.approx(plain.losses, abs=1e-6)
    assert sorted_rows["eval_loss"] == pytest.approx(unsorted_rows["eval_loss"], abs=1e-6)
    assert sorted_rows["tokens"] < unsorted_rows["tokens"]
    assert run.events("start")[0]["tokens_total"] == sorted_rows["tokens"]
    rates = [(event["row_tokens_per_s"], event["tokens_per_s"]) for event in run.events("step")]
    assert all(0 < without <= computed for without, computed in rates)


def test_the_largest_micro_batch_is_met_first_and_leaves_nothing_behind(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    """Memory that does not suffice ends the training before its first step, not in the middle."""
    from trainer.train.loop import Loop

    rows = [*ROWS, {"prompt": "long", "completion": "word " * 30}]
    run.params.update(per_device_batch_size=1, gradient_accumulation_steps=2)
    run.write(rows=rows)
    met: list[int] = []
    computed = Loop.loss_sum

    def watched(loop: Loop, loss: Any, batch: Any) -> Any:
        met.append(batch.ids.numel())
        return computed(loop, loss, batch)

    monkeypatch.setattr(Loop, "loss_sum", watched)
    run.train()
    assert met[0] == max(met) > met[1]
    assert len(met) == 1 + 2 * 6
    plain = Run(run.path.with_name("plain"), run.models_dir, params=run.params)
    monkeypatch.setattr(Loop, "_meet_peak", lambda _: None)
    plain.write(rows=rows).train()
    assert run.losses == plain.losses


def test_the_adapter_loads_in_peft_and_gives_finite_logits(run: Run):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run.params["target_modules"] = "attention"
    result = run.write().train()
    output = run.path / "output"
    assert {file["path"]: file["sha256"] for file in result["output"]} == {
        path.name: digest(path) for path in output.iterdir()
    }
    base = AutoModelForCausalLM.from_pretrained(run.models_dir / run.model)
    ids = AutoTokenizer.from_pretrained(output)("What follows one?\n", return_tensors="pt")["input_ids"]
    plain = base(ids).logits
    tuned = PeftModel.from_pretrained(base, output)(ids).logits
    assert torch.isfinite(tuned).all()
    assert not torch.allclose(plain, tuned)
    config = json.loads((output / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == run.model
    adapted = {name.rpartition(".")[2] for name in config["target_modules"]}
    assert adapted == {"q_proj", "k_proj", "v_proj", "o_proj"}


@pytest.mark.slow
def test_the_full_model_loads_and_has_learnt(run: Run):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run.params.update(tuning="full", precision="bfloat16", max_steps=60, learning_rate=0.003)
    run.write(rows=ROWS[:4]).train()
    model = AutoModelForCausalLM.from_pretrained(run.path / "output")
    tokenizer = AutoTokenizer.from_pretrained(run.path / "output")
    assert model.dtype == torch.bfloat16
    ids = tokenizer("What follows two?\n", return_tensors="pt")["input_ids"]
    answer = model.generate(ids, max_new_tokens=30, do_sample=False)[0, ids.shape[1] :]
    assert tokenizer.decode(answer, skip_special_tokens=True) == "After two comes TWO."


def test_events_and_metrics_tell_the_whole_run(run: Run):
    run.params["epochs"] = 2.0
    run.params["max_steps"] = None
    result = run.write(validation=ROWS[:3]).train()
    start = run.events("start")[0]
    assert (start["rows"], start["steps_total"]) == (11, 6)
    assert start["tokens_total"] == result["tokens"]
    steps = run.events("step")
    assert [event["step"] for event in steps] == [1, 2, 3, 4, 5, 6]
    assert all(step["step_s"] > 0 for step in steps)
    assert [event["step"] for event in run.events("eval")] == [3, 6]
    assert result["eval_loss"] == run.events("eval")[-1]["eval_loss"]
    assert result["evaluation_s"] > 0
    assert result["peak_memory_bytes"] > 50_000_000
    assert result["tokens_per_s"] > 0
    assert result["runtime_s"] >= result["startup_s"] + result["train_s"]
    table = list(csv.DictReader(io.StringIO((run.path / "output" / "metrics.csv").read_text())))
    assert [row["step"] for row in table] == ["1", "2", "3", "4", "5", "6"]
    assert float(table[2]["eval_loss"]) == run.events("eval")[0]["eval_loss"]
    for name in (
        "loss",
        "learning_rate",
        "tokens_per_s",
        "row_tokens_per_s",
        "memory_bytes",
        "gradient_norm",
    ):
        assert [float(row[name]) for row in table] == [event[name] for event in steps], name
    card = (run.path / "output" / "README.md").read_text()
    assert digest(run.path / "inputs" / "train.jsonl") in card
    assert "base_model: builtin/tiny-llama" in card


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("builtin/tiny-gpt", "There is no model builtin/tiny-gpt; builtin are builtin/tiny-llama"),
        ("/nowhere/model", "The model directory /nowhere/model is not below a folder of base models"),
        ("/etc", "The model directory /etc is not below a folder of base models"),
        ("some-lab/some-model", "`hf download some-lab/some-model`"),
        ("../secrets", "is no model"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_explained(run: Run, model: str, reason: str):
    run.model = model
    result = run.write().train()
    assert (result["outcome"], result["exit_code"]) == ("error", 1)
    assert reason in result["reason"]


def test_more_tokens_than_the_model_reads_is_explained(run: Run):
    run.params["tokens_per_sample"] = 4096
    reason = run.write().train()["reason"]
    assert reason == f"{run.model} has 2,048 positions: choose at most 2048 tokens per sample."


def test_a_loss_that_is_no_number_ends_the_training_with_a_remedy(run: Run, tmp_path: Path):
    from safetensors.torch import load_file, save_file

    from trainer import builtin

    base = shutil.copytree(builtin.ensure("builtin/tiny-llama", run.models_dir), tmp_path / "broken")
    weights = load_file(base / "model.safetensors")
    weights["lm_head.weight"][5] = float("nan")
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    run.model, run.model_roots = str(base), (tmp_path,)
    assert "is not a finite number. Lower learning_rate" in run.write().train()["reason"]


def test_a_gpu_that_is_not_there_is_explained(run: Run):
    run.write()
    order = json.loads((run.path / "spec.json").read_text())
    order["local"]["device"] = "cuda"
    (run.path / "spec.json").write_text(json.dumps(order))
    assert "no usable CUDA GPU" in run.train()["reason"]


def test_qlora_without_bitsandbytes_is_explained():
    import torch

    from trainer.train.base.adapters import four_bit
    from trainer.train.errors import TrainError

    if find_spec("bitsandbytes") is None:
        with pytest.raises(TrainError, match="install it or choose lora"):
            four_bit(torch.bfloat16)


def test_a_local_directory_is_a_base_model_and_its_path_stays_out_of_the_card(run: Run):
    from trainer import builtin

    run.model = str(builtin.ensure("builtin/tiny-qwen", run.models_dir))
    run.model_roots = (run.models_dir,)
    result = run.write().train()
    assert result["outcome"] == "succeeded", result["reason"]
    assert "base_model: tiny-qwen\n" in (run.path / "output" / "README.md").read_text()


def test_a_directory_outside_the_roots_is_not_loaded_whatever_the_portal_asked_for(run: Run, tmp_path: Path):
    from trainer import builtin

    theirs = builtin.ensure("builtin/tiny-qwen", run.models_dir)
    root = tmp_path / "roots"
    (root / "half").mkdir(parents=True)
    (root / "link").symlink_to(theirs)
    for file in theirs.iterdir():
        (root / "half" / file.name).symlink_to(file)
    (root / "missing").mkdir()
    run.model_roots = (root,)
    for name in (theirs, root / "link", root / "half", f"{root}/../{theirs.relative_to(tmp_path.parent)}"):
        run.model = str(name)
        assert "is not below a folder of base models" in run.write().train()["reason"], name
    run.model = str(root / "missing")
    assert "does not exist on this node or has no config.json" in run.write().train()["reason"]


@pytest.mark.parametrize("steps", [1, 3])
def test_a_gradient_that_is_no_number_ends_the_training_before_it_spoils_the_weights(
    run: Run, monkeypatch: pytest.MonkeyPatch, steps: int
):
    """The loss shows it one step later: after the last step, or after a checkpoint."""
    from trainer.train.loop import Loop

    def overflow(loop: Loop, *batch: Any) -> Any:
        loss = original(loop, *batch)
        if loop.measured.step == steps - 1:
            loss.register_hook(lambda gradient: gradient * float("inf"))
        return loss

    original = Loop.loss_sum
    monkeypatch.setattr(Loop, "loss_sum", overflow)
    run.checkpoint_every_s = 0.0
    run.params["max_steps"] = 3
    result = run.write().train()
    assert "is not a finite number. Lower learning_rate" in result["reason"]
    found = newest(run.path / "checkpoints")
    assert (found.step if found else 0) == steps - 1
