"""Architectures of the catalogue with random weights: the sizes are right, and a training measures them."""

from __future__ import annotations

import pytest

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.domain.config_json import UnknownSizes, config_json
from tests.trainer.runs import Run

CATALOGUE = shipped_catalogue()

pytestmark = pytest.mark.torch
TINY = {**config_json(CATALOGUE.model("builtin/tiny-llama")), "vocab_size": 4000}


def parameters(name: str) -> int:
    """Counted on the meta device, where weights take no memory."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = config_json(CATALOGUE.model(name))
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape))
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize(
    "name",
    ["llama3.1-8b", "smollm2-135m", "qwen2.5-0.5b", "granite-3.1-2b", "mixtral-8x7b", "pythia-160m", "phi-4"],
)
def test_a_built_architecture_has_the_parameters_of_the_real_one(name: str):
    assert parameters(name) == pytest.approx(CATALOGUE.model(name).parameters, rel=0.01)


@pytest.mark.parametrize("name", ["granite-4.0-h-tiny", "gpt_bigcode-santacoder"])
def test_what_sizes_cannot_describe_is_refused_with_a_remedy(name: str):
    with pytest.raises(UnknownSizes, match="choose another model"):
        config_json(CATALOGUE.model(name))


@pytest.mark.parametrize("tuning", ["lora", pytest.param("full", marks=pytest.mark.slow)])
def test_a_training_measures_speed_and_memory_and_leaves_no_weights(run: Run, tuning: str):
    run.model, run.node = "random/some/model", {"shape": TINY}
    run.params |= {"tuning": tuning, "max_steps": 3}
    if tuning == "full":
        run.params |= {"lora_r": None, "lora_alpha": None}
    result = run.write().train()
    assert result["exit_code"] == 0, result["reason"]
    assert result["tokens_per_s"] > 0
    assert result["peak_memory_bytes"] > 0
    assert {path.name for path in (run.path / "output").iterdir()} == {"metrics.csv", "README.md"}


def test_random_weights_are_not_gathered_for_an_output_that_leaves_them_out(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    from trainer.train import checkpoint_state

    gathered: list[object] = []
    monkeypatch.setattr(checkpoint_state, "weights", lambda *_, **__: gathered.append(1) or {})
    run.model, run.node = "random/some/model", {"shape": TINY}
    run.params |= {"max_steps": 2}
    assert run.write().train()["outcome"] == "succeeded"
    assert gathered == []


def test_without_sizes_the_reason_is_said(run: Run):
    run.model = "random/some/model"
    result = run.write().train()
    assert result["exit_code"] != 0
    assert "knows no sizes of random/some/model" in result["reason"]
