"""Hybrids and others, trained as a plain loop trains them.

Losses of six steps, a resumed training, and the evaluation of the output as others read it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.sampling import mostly_on_demand
from tests.trainer.runs import ROWS, Run
from tests.trainer.train.base.architectures import save
from tests.trainer.train.base.examined import Findings, examine, sentences
from tests.trainer.train.base.shrunk import POSITIONS, causal_kinds, shrunk

pytestmark = pytest.mark.torch
LOSS, READ = 5e-6, 1e-5
_ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
_MLP = {"gate_proj", "up_proj", "down_proj"}
ADAPTED = {
    "falcon_h1": {*_ATTENTION, *_MLP, "in_proj"},
    "nemotron_h": {*_ATTENTION, "up_proj", "down_proj", "in_proj"},
    "mamba": {"in_proj"},
    "mamba2": {"in_proj"},
    "bamba": {*_ATTENTION, *_MLP, "in_proj"},
    "granitemoehybrid": {*_ATTENTION, "input_linear", "output_linear", "in_proj"},
    "qwen3_next": {*_ATTENTION, *_MLP, "in_proj_qkvz", "in_proj_ba", "out_proj"},
    "deepseek_v32": {"q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj", *_MLP},
    "deepseek_v4": {"q_a_proj", "q_b_proj", "kv_proj", "o_b_proj", *_MLP},
    "laguna": {*_ATTENTION, *_MLP, "g_proj"},
    "glm4_moe": {*_ATTENTION, *_MLP},
    "falcon": {"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"},
}
TRAINED = sorted(ADAPTED.keys() - {"qwen3_next", "falcon", "mamba"})  # these the sweep trains
LONG_TRAINED = {"bamba", "deepseek_v4"}
ALONE = {"deepseek_v32"}  # padding changes which keys its attention picks
LONG = sentences(8, 30, 40)  # about 300 tokens


def _examine(kind: str, tuning: str, folder: Path) -> Findings:
    if kind not in causal_kinds():
        pytest.skip(f"the installed transformers has no {kind}")
    if kind == "deepseek_v4":
        return examine(kind, tuning, folder, rows=LONG)
    return examine(kind, tuning, folder, micro=1 if kind in ALONE else 4)


def _assert_exact(found: Findings) -> None:
    assert (found.reason, found.warnings) == ("", ())
    assert found.loss is not None
    assert found.loss <= LOSS
    assert found.resumed == 0.0
    assert found.read is not None
    assert found.read <= READ


@pytest.mark.parametrize("kind", mostly_on_demand(TRAINED, {*TRAINED} - LONG_TRAINED))
def test_adapters_learn_what_a_plain_loop_learns(kind: str, tmp_path: Path):
    found = _examine(kind, "lora", tmp_path)
    _assert_exact(found)
    assert set(found.adapted) == ADAPTED[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRAINED)
def test_all_weights_learn_what_a_plain_loop_learns(kind: str, tmp_path: Path):
    _assert_exact(_examine(kind, "full", tmp_path))


def test_adapters_go_where_they_can_learn():
    from trainer.train.base.adapters import targets

    for kind in ADAPTED.keys() & set(causal_kinds()):
        model = shrunk(kind)
        found = {name.rpartition(".")[2] for name in targets(model, _reach(model))}
        assert found == ADAPTED[kind], kind


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("falcon_h1", "No adapter for out_proj (2 layers): its weight is read"),
        ("mamba", "No adapter for x_proj, dt_proj, out_proj (6 layers): its weight is read"),
        ("deepseek_v4", "No adapter for o_a_proj (2 layers): it computes something else"),
        ("deepseek_v32", "No adapter for wq_b, wk, weights_proj (6 layers): no gradient"),
        ("deepseek_v32", "No gradient reaches model.layers.0.self_attn.indexer, model.layers.1"),
    ],
)
def test_what_is_left_out_is_told_with_the_reason(kind: str, said: str):
    assert any(sentence.startswith(said) for sentence in _scope(shrunk(kind)))


def test_a_mixer_without_fused_kernels_over_its_output_keeps_that_adapter():
    assert not any("No adapter" in sentence for sentence in _scope(shrunk("qwen3_next")))


def _scope(model: Any, longest: int = POSITIONS, micro: int = 1) -> tuple[str, ...]:
    from types import SimpleNamespace

    from trainer.train.base.scope import scope

    settings = SimpleNamespace(
        tuning="lora", target_modules="all-linear", tokens_per_sample=longest, per_device_batch_size=micro
    )
    order: Any = SimpleNamespace(settings=settings)
    return scope(model, order, _reach(model, longest))


def _reach(model: Any, longest: int = POSITIONS) -> Any:
    from trainer.builtin import byte_tokenizer
    from trainer.train.base.probe import probe

    return probe(model, byte_tokenizer(POSITIONS), "tiny", longest)


def test_blocks_that_begin_late_in_a_row_are_seen_where_rows_are_that_long():
    seen, unseen = (_scope(shrunk("deepseek_v4"), longest) for longest in (300, 100))
    late = "No gradient reaches model.layers.0.self_attn.compressor"
    assert not any(sentence.startswith(late) for sentence in seen)
    assert any(sentence.startswith(late) for sentence in unseen)


def test_the_probe_keeps_nothing_of_a_long_text_for_a_backward_pass():
    """It would be more than training itself keeps with gradient checkpointing."""
    import weakref

    model = shrunk("llama")
    given: list[Any] = []
    kept: dict[int, int] = {}

    def noted(_module: Any, args: Any) -> None:
        given.append(weakref.ref(args[0]))

    def counted(_module: Any, args: Any) -> None:
        kept[args[0].shape[1]] = sum(one() is not None for one in given)
        given.clear()

    for layer in model.model.layers:
        layer.mlp.down_proj.register_forward_pre_hook(noted)
    model.lm_head.register_forward_pre_hook(counted)
    _reach(model)
    assert kept == {16: 2, POSITIONS: 0}


def _run(run: Run, tmp_path: Path, kind: str, **params: Any) -> Run:
    run.model, run.model_roots = str(save(shrunk(kind), tmp_path / kind, POSITIONS)), (tmp_path,)
    run.params |= params
    return run


def test_weights_without_moments_yet_do_not_keep_a_training_from_resuming(run: Run, tmp_path: Path):
    """A compressor of keys learns from rows of 128 tokens on; these are shorter."""
    params = {"tuning": "full", "lora_r": None, "lora_alpha": None, "learning_rate": 1e-3}
    params |= {"tokens_per_sample": 320, "per_device_batch_size": 1, "max_steps": 4}
    _run(run, tmp_path, "deepseek_v4", **params).checkpoint_every_s = 0.0
    result = run.write(rows=ROWS).train()
    assert result["outcome"] == "succeeded", result["reason"]
    again = replace(run, path=run.path.with_name("again"))
    resumed = again.write(rows=ROWS, resume=run.path / "checkpoints" / "step-3").train()
    assert resumed["outcome"] == "succeeded", resumed["reason"]
    assert resumed["final_loss"] == result["final_loss"]


def test_a_model_without_checkpointing_is_told_what_to_choose(run: Run, tmp_path: Path):
    result = _run(run, tmp_path, "jetmoe", gradient_checkpointing=True).write().train()
    assert result["outcome"] == "error"
    assert "(jetmoe) has no gradient checkpointing: choose gradient_checkpointing false" in result["reason"]


def test_an_adapter_that_its_reader_would_lose_in_part_is_warned_of(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """PEFT renames shared experts of this kind past their place."""
    monkeypatch.setattr("trainer.train.read_back._reversed_names", lambda _config: ())
    result = _run(run, tmp_path, "laguna").write().train()
    assert result["outcome"] == "succeeded"
    (warning,) = result["output_warnings"]
    assert warning.startswith(
        "Parts of the output are lost where peft and transformers of this node read it again (3)"
    )
    assert "model.layers.1.mlp.shared_experts.down_proj" in warning
    assert f"- {warning}" in (run.path / "output" / "README.md").read_text()
    assert f"warning: {warning}" in capsys.readouterr().out


def test_an_output_that_cannot_be_read_is_warned_of(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_args: Any, **_named: Any) -> None:
        raise ValueError("Target modules not found in the base model.")

    monkeypatch.setattr("peft.PeftModel.load_adapter", broken)
    result = run.write().train()
    assert result["outcome"] == "succeeded"
    assert result["output_warnings"] == [
        "The output cannot be read again: Target modules not found in the base model."
    ]


def test_weights_that_a_full_output_lacks_are_named(run: Run):
    from safetensors.torch import load_file, save_file
    from transformers import AutoConfig

    from trainer.train.read_back import what_is_lost

    run.params.update(tuning="full", max_steps=1, lora_r=None, lora_alpha=None)
    assert run.write().train()["output_warnings"] == []
    output = run.path / "output"
    stored = load_file(output / "model.safetensors")
    gone = "model.layers.0.mlp.up_proj.weight"
    save_file({name: value for name, value in stored.items() if name != gone}, output / "model.safetensors")
    (warning,) = what_is_lost(output, AutoConfig.from_pretrained(output), {}, adapter=False)
    assert "read it again (1)" in warning
    assert gone in warning


def test_attention_that_picks_its_keys_is_told_where_padding_can_change_the_pick():
    def told(longest: int, micro: int) -> bool:
        sentences = _scope(shrunk("deepseek_v32"), longest, micro)
        return any("Its attention picks 16 keys for each token" in sentence for sentence in sentences)

    assert told(longest=48, micro=4)
    assert not told(longest=48, micro=1)
    assert not told(longest=16, micro=4)


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("falcon_h1", "causal-conv1d, mamba-ssm"),
        ("qwen3_next", "causal-conv1d, flash-linear-attention"),
        ("llama", ""),
    ],
)
def test_kernels_that_a_hybrid_lacks_are_named(kind: str, missing: str):
    from types import SimpleNamespace

    from trainer.train.base.kernels import without_kernels

    model = shrunk(kind)
    for device in ("cpu", "cuda"):
        order: Any = SimpleNamespace(device=device, spec=SimpleNamespace(model="tiny"))
        sentence = without_kernels(model, order, _reach(model))
        assert missing in sentence
        assert bool(sentence) == bool(missing)
        assert ("can install" in sentence) == (bool(missing) and device == "cuda")


def test_the_log_of_a_hybrid_names_the_kernels_it_would_use(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    _run(run, tmp_path, "mamba2", max_steps=1).write().train()
    assert "kernels made for GPUs (causal-conv1d, mamba-ssm)." in capsys.readouterr().out
