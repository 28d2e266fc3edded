"""The loss computed in chunks over trained positions, against all logits at once by the models' own code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trainer.runs import REPOSITORY, Run

pytestmark = pytest.mark.torch
VOCABULARY, ROWS, LENGTH = 97, 3, 20
TINY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
# The parts between decoder and logits differ: soft caps, scales, ties, experts, no attention at all.
MODELS: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {"tie_word_embeddings": True},
    "Gemma2": {"head_dim": 8, "final_logit_softcapping": 2.0},
    "Cohere": {"logit_scale": 0.3},
    "Granite": {"logits_scaling": 3.0},
    "GptOss": {"num_local_experts": 4, "head_dim": 8},
    "Llama4Text": {"num_local_experts": 4, "head_dim": 8, "intermediate_size_mlp": 40},  # misnamed
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0},
    "Mamba": {"state_size": 4},
    "OPT": {"ffn_dim": 48, "word_embed_proj_dim": 32, "dropout": 0},  # does not call its decoder as a module
}


def tiny(name: str) -> Any:
    import torch
    import transformers

    torch.manual_seed(1)
    config = getattr(transformers, f"{name}Config")(**TINY | MODELS[name])
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()


def batch() -> Any:
    """Rows with a prompt, one padded, one of which little is trained."""
    import torch

    from trainer.train.data import IGNORED, Batch

    torch.manual_seed(2)
    ids = torch.randint(1, VOCABULARY, (ROWS, LENGTH))
    labels = ids.clone()
    labels[:, :6], labels[1, 12:], labels[2, :17] = IGNORED, IGNORED, IGNORED
    return Batch(ids, labels)


def gradients(model: Any, loss: Any) -> dict[str, Any]:
    model.zero_grad()
    loss.backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


def all_at_once(model: Any, rows: Any) -> Any:
    """The independent reference; it is told where padding is."""
    import torch

    mask = torch.ones_like(rows.ids)
    mask[1, 12:] = 0
    logits = model(input_ids=rows.ids, attention_mask=mask, use_cache=False).logits
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), rows.labels[:, 1:].flatten(), reduction="sum"
    )


@pytest.mark.parametrize("name", MODELS)
def test_chunks_have_the_loss_and_the_gradients_of_all_at_once(name: str, monkeypatch: pytest.MonkeyPatch):
    import torch

    from trainer.train import loss

    model, rows = tiny(name), batch()
    expected = all_at_once(model, rows)
    whole = gradients(model, expected)
    for positions in (1000, 4):
        monkeypatch.setattr(loss, "positions_at_once", lambda _, positions=positions: positions)
        found = loss.TokenLoss(model)(rows.ids, rows.labels)
        assert found.item() == pytest.approx(expected.item(), rel=1e-6)
        parts = gradients(model, found)
        assert parts.keys() == whole.keys()
        for weight in whole:
            torch.testing.assert_close(parts[weight], whole[weight], rtol=1e-4, atol=1e-6)


def test_an_adapter_learns_the_same_and_rows_without_targets_teach_nothing(monkeypatch: pytest.MonkeyPatch):
    import torch
    from peft import LoraConfig, get_peft_model

    from trainer.train import loss
    from trainer.train.data import IGNORED

    monkeypatch.setattr(loss, "positions_at_once", lambda _: 4)
    config = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    model, rows = get_peft_model(tiny("Llama"), config), batch()
    counted = loss.TokenLoss(model)
    whole = gradients(model, all_at_once(model, rows))
    parts = gradients(model, counted(rows.ids, rows.labels))
    assert parts.keys() == whole.keys()
    assert all(torch.allclose(parts[name], whole[name], atol=1e-6) for name in whole)
    nothing = counted(rows.ids, torch.full_like(rows.labels, IGNORED))
    assert nothing.item() == 0
    none = gradients(model, nothing)
    assert none.keys() == whole.keys()  # as several processes need to exchange them
    assert not any(gradient.any() for gradient in none.values())


def largest(counted: Any, rows: Any) -> int:
    """Bytes of the largest tensor that forward and backward pass make."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    seen: list[int] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **kwargs or {})
            seen.extend(t.untyped_storage().nbytes() for t in tree_leaves(made) if hasattr(t, "storage"))
            return made

    with Watch():
        counted(rows.ids, rows.labels).backward()
    return max(seen)


def test_no_tensor_holds_more_logits_than_allowed(monkeypatch: pytest.MonkeyPatch):
    from trainer import logits
    from trainer.train.loss import TokenLoss

    vocabulary, positions = 20_000, 8
    monkeypatch.setitem(TINY, "vocab_size", vocabulary)
    monkeypatch.setitem(TINY, "hidden_size", 4)
    monkeypatch.setattr(logits, "BYTES", 12 * vocabulary * (positions - 1))
    model, rows = tiny("Llama"), batch()
    trained = int((rows.labels[:, 1:] >= 0).sum())
    assert largest(TokenLoss(model), rows) == 4 * vocabulary * positions < 4 * vocabulary * trained


@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["ddp", "fsdp"])
def test_two_processes_compute_in_chunks_what_one_does_at_once(
    run: Run, sharding: str, monkeypatch: pytest.MonkeyPatch
):
    run.params |= {"tuning": "full", "lora_r": None, "lora_alpha": None, "learning_rate": 1e-3}
    run.params |= {"gradient_checkpointing": True, "gradient_accumulation_steps": 2, "max_steps": 3}
    validation = [{"prompt": "What follows six?\n", "completion": "After six comes SIX."}]
    alone = Run(run.path.with_name("alone"), run.models_dir, {**run.params})
    alone.write(validation=validation).train()
    few = run.path.with_name("few")
    few.mkdir()
    (few / "sitecustomize.py").write_text("import trainer.logits as logits; logits.BYTES = 12 * 4096 * 7\n")
    monkeypatch.setenv("PYTHONPATH", f"{few}:{REPOSITORY}")
    run.slots, run.params["sharding"], run.params["per_device_batch_size"] = 2, sharding, 2
    assert run.write(validation=validation).finish() == 0, run.result["reason"]
    assert run.losses == pytest.approx(alone.losses, rel=1e-4)
    assert run.result["eval_loss"] == pytest.approx(alone.result["eval_loss"], rel=1e-4)
