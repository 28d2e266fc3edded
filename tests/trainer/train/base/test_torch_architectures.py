"""Real architectures: what of them is trained, and which are refused before the first step."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.trainer.runs import Run
from tests.trainer.train.base.architectures import SIZES, built, save
from trainer.recipes import DEFAULT_RECIPE

pytestmark = pytest.mark.torch
ENCODERS = ("bert", "electra")
_OF_DEEPSEEK = {
    *("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"),
    *("gate_proj", "up_proj", "down_proj"),
}
MIXTURES = {  # layers that LoRA adapts: attention, dense MLPs and experts that every token uses
    "mixtral": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "granitemoe": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "granitemoeshared": {"q_proj", "k_proj", "v_proj", "o_proj", "input_linear", "output_linear"},
    "phimoe": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "olmoe": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "gpt_oss": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "qwen2_moe": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
    "qwen3_moe": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "deepseek_v2": _OF_DEEPSEEK,
    "deepseek_v3": _OF_DEEPSEEK,
    "glm4_moe": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
    "llama4_text": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
    "jetmoe": {"kv_proj"},
}


def _probe(model: Any) -> Any:
    from trainer.builtin import byte_tokenizer
    from trainer.train.base.probe import probe

    return probe(model, byte_tokenizer(128), "tiny")


def test_text_reaches_language_models_and_no_tower_and_only_encoders_look_ahead():
    for name in SIZES:
        model = built(name)
        reach = _probe(model)
        assert reach.looks_ahead is (name in ENCODERS), name
        outside = {
            weight.split(".")[1] for weight, _ in model.named_parameters() if weight not in reach.weights
        }
        towers = {
            "gemma3": {"vision_tower", "multi_modal_projector"},
            "git": {"image_encoder", "visual_projection"},
        }
        assert outside == towers.get(name, set()), name
        assert all(weight.grad is None for weight in model.parameters())


def test_of_all_mixtures_of_experts_the_same_parts_are_adapted():
    from trainer.architectures import number_of_experts
    from trainer.train.base.adapters import targets

    for name, expected in MIXTURES.items():
        model = built(name)
        assert number_of_experts(json.loads(model.config.to_json_string(use_diff=False))) == 4, name
        found = set(targets(model, _probe(model)))
        assert {layer.rpartition(".")[2] for layer in found} == expected, name
        assert not any(".experts." in layer for layer in found), name


def test_what_is_adapted_is_what_was_meant_and_peft_reads_it_again(tmp_path: Path):
    """Peft takes a `gate_proj` of some mixtures for all routed experts."""
    import torch
    from peft import PeftModel

    from trainer.train.base.adapters import targets, with_adapter

    tokens = torch.arange(3, 19)[None]
    for name, placement in itertools.product(MIXTURES, DEFAULT_RECIPE.params["target_modules"].choices):
        order = _order_of_adapter(placement)
        meant = set(targets(built(name), None, placement))
        adapted = with_adapter(built(name), order, None)
        found = {layer for layer, _ in adapted.get_base_model().named_modules() if layer in meant}
        sizes = [adapted.get_base_model().get_submodule(layer) for layer in found]
        learning = [weight for weight in adapted.named_parameters() if weight[1].requires_grad]
        assert {weight.rpartition(".lora_")[0] for weight, _ in learning} == {
            f"base_model.model.{layer}" for layer in meant
        }, name
        count = sum(layer.in_features + layer.out_features for layer in sizes)
        assert sum(weight.numel() for _, weight in learning) == 4 * count, name
        assert adapted.config.model_type == name
        for weight, values in learning:
            if "lora_B" in weight:
                torch.nn.init.normal_(values)
        adapted.save_pretrained(tmp_path / name / placement, save_embedding_layers=False)
        again = PeftModel.from_pretrained(built(name), tmp_path / name / placement)
        with torch.no_grad():
            assert torch.allclose(again.eval()(tokens).logits, adapted.eval()(tokens).logits, atol=1e-4), name


def _order_of_adapter(placement: str) -> Any:
    settings = SimpleNamespace(target_modules=placement, lora_r=4, lora_alpha=8)
    return SimpleNamespace(settings=settings, spec=SimpleNamespace(model="tiny"))


def test_positions_are_read_as_transformers_reads_them():
    from transformers import AutoConfig

    from trainer.architectures import positions

    for name, sizes in (SIZES | {"dbrx": {"max_seq_len": 64}, "gptj": {}, "bloom": {}}).items():
        config = AutoConfig.for_model(name, **sizes).get_text_config()
        assert positions(config.to_dict()) == (getattr(config, "max_position_embeddings", None) or 0), name


def test_predictions_count_the_adapters_that_are_trained():
    from knowledge.core.domain.adapted_layers import ends
    from knowledge.core.domain.hf_config import model_from_config
    from trainer.train.base.adapters import targets

    own = {"llama4_text", "jetmoe"}  # layers of several sizes
    for name in (
        "llama",
        "qwen2",
        "qwen3",
        "granite",
        "gemma3_text",
        "gemma3",
        "phi3",
        *MIXTURES.keys() - own,
    ):
        model = built(name)
        described = model_from_config(model.config.to_json_string(use_diff=False), name)
        for placement in DEFAULT_RECIPE.params["target_modules"].choices:
            adapted = targets(model, _probe(model), placement)
            layers = [model.get_submodule(layer) for layer in adapted]
            counted = sum(layer.in_features + layer.out_features for layer in layers)
            assert ends(described, placement) == counted, (name, placement)


def _run_of(run: Run, name: str, tmp_path: Path, **params: Any) -> Run:
    run.model, run.model_roots = str(save(built(name), tmp_path / name)), (tmp_path,)
    run.params |= params
    run.checkpoint_every_s = 0.0
    return run


FULL = {"tuning": "full", "lora_r": None, "lora_alpha": None, "learning_rate": 1e-3}


@pytest.mark.parametrize("params", [{"tuning": "lora"}, FULL])
def test_a_model_with_a_vision_tower_is_trained_on_text_and_keeps_the_tower(
    run: Run, tmp_path: Path, params: dict[str, Any]
):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    result = _run_of(run, "gemma3", tmp_path, **params).write().train()
    assert result["outcome"] == "succeeded", result["reason"]
    again = replace(run, path=run.path.with_name("again"))
    again.write(resume=run.path / "checkpoints" / "step-5").train()
    assert again.result["final_loss"] == result["final_loss"]
    assert "does not reach model.vision_tower" in (run.path / "output" / "README.md").read_text()
    base = AutoModelForCausalLM.from_pretrained(run.model)
    output = run.path / "output"
    if params["tuning"] == "lora":
        tuned = PeftModel.from_pretrained(base, output)
        adapted = [name for name, weight in tuned.named_parameters() if "lora_B" in name and weight.any()]
        assert len(adapted) == 14
        assert all(".language_model." in name for name in adapted)
        return
    tuned, loading = AutoModelForCausalLM.from_pretrained(output, output_loading_info=True)
    assert not loading["missing_keys"]
    for (name, before), after in zip(base.named_parameters(), tuned.parameters(), strict=True):
        assert torch.equal(before, after) is (".language_model." not in name), name


@pytest.mark.slow
@pytest.mark.parametrize(("sharding", "params"), [("ddp", {"tuning": "lora"}), ("fsdp", FULL)])
def test_a_model_with_a_vision_tower_is_trained_by_two_processes(
    run: Run, tmp_path: Path, sharding: str, params: dict[str, Any]
):
    _run_of(run, "gemma3", tmp_path, **params)
    alone = replace(run, path=run.path.with_name("alone"), params={**run.params})
    alone.write().train()
    run.slots, run.params["sharding"], run.params["per_device_batch_size"] = 2, sharding, 2
    assert run.write().finish() == 0, run.result["reason"]
    assert run.losses == pytest.approx(alone.losses, rel=1e-4)


def test_a_model_whose_tokens_see_later_ones_is_refused(run: Run, tmp_path: Path):
    assert "a token sees those after it" in _run_of(run, "bert", tmp_path).write().train()["reason"]


def test_a_model_without_its_head_is_refused_unless_the_head_is_tied(run: Run, tmp_path: Path):
    run.params["max_steps"], run.model_roots = 1, (tmp_path,)
    for name, complete in (("llama", False), ("gemma3_text", True)):
        run.model = str(save(built(name).base_model, tmp_path / name))
        result = run.write().train()
        assert (result["outcome"] == "succeeded") is complete, result["reason"]
        assert complete or "lack weights of the model: lm_head.weight" in result["reason"]


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (
            {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]},
            "is a T5ForConditionalGeneration;",
        ),
        ({"model_type": "whisper"}, "is a whisper;"),
        ({"model_type": "qwen2_vl"}, "is a qwen2_vl;"),
        ({"model_type": "tomorrow"}, "model type `tomorrow`"),
    ],
)
def test_models_of_other_tasks_are_refused_in_a_sentence(
    run: Run, tmp_path: Path, described: dict[str, Any], message: str
):
    folder = save(built("llama"), tmp_path / "other")
    (folder / "config.json").write_text(json.dumps(described))
    run.model, run.model_roots = str(folder), (tmp_path,)
    reason = run.write().train()["reason"]
    assert message in reason
    assert len(reason) < 400 + len(run.model)


def test_experts_are_not_stored_in_4_bits(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainer.train.settings.check", lambda order: None)  # that it needs a GPU
    for name in ("mixtral", "falcon"):
        result = _run_of(run, name, tmp_path, tuning="qlora").write().train()
        assert "cannot be stored in 4 bits; choose the tuning lora" in result["reason"]


@pytest.mark.parametrize(("major", "refused"), [(7, True), (8, False)])
def test_a_gpu_that_only_emulates_bfloat16_is_refused(
    monkeypatch: pytest.MonkeyPatch, major: int, refused: bool
):
    """On what the driver of a T4 and of an A100 answers."""
    import torch

    from trainer.train.base.suitable import check_precision
    from trainer.train.errors import TrainError

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: SimpleNamespace(major=major))
    assert torch.cuda.is_bf16_supported() or major < 8
    order: Any = SimpleNamespace(device="cuda", settings=SimpleNamespace(precision="bfloat16"))
    if not refused:
        check_precision(order)
        return
    with pytest.raises(TrainError, match="choose the precision float16"):
        check_precision(order)


def test_a_weight_that_had_no_gradient_yet_is_saved_counted_and_restored():
    import torch

    from trainer.train import checkpoint_state

    def trained(steps: int, resumed: checkpoint_state.Snapshot | None = None) -> tuple[Any, Any]:
        """Two layers; the second one is used in every other step."""
        torch.manual_seed(0)
        model = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
        if resumed:
            checkpoint_state.restore(model, optimizer, resumed)
        for step in range(resumed.step if resumed else 0, steps):
            used = model[0](torch.ones(1, 2))
            (model[1](used) if step % 2 else used).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return model, optimizer

    def snapshot(step: int) -> checkpoint_state.Snapshot:
        model, optimizer = trained(step)
        return checkpoint_state.Snapshot(
            *(step, checkpoint_state.updates(optimizer), 0, None, None, {}, {}, []),
            checkpoint_state.weights(model, keep=True),
            checkpoint_state.moments(model, optimizer, keep=True),
        )

    whole = dict(trained(6)[0].named_parameters())
    for step in (0, 1, 3):
        taken = snapshot(step)
        assert taken.updates == step
        for name, weight in trained(6, taken)[0].named_parameters():
            assert torch.equal(weight, whole[name]), (step, name)
    of_earlier_versions = {name: moment for name, moment in taken.moments.items() if ".step" not in name}
    _, optimizer = trained(3, replace(taken, moments=of_earlier_versions))
    assert {int(entry["step"]) for entry in optimizer.state.values()} == {3}
