"""Learning rates and the optimiser's values, beside transformers' schedules and a plain AdamW."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.trainer.runs import Run
from trainer.train.schedule import SHAPES, share_of_peak

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("steps", [1, 2, 7, 100])
@pytest.mark.parametrize("warmup_share", [0.0, 0.03, 0.5])
@pytest.mark.parametrize("schedule", SHAPES)
def test_after_the_warm_up_rates_are_those_of_transformers(schedule: str, warmup_share: float, steps: int):
    """Its warm-up begins at nothing, ours with a step that learns."""
    import torch
    from transformers import get_scheduler

    warm_up = math.ceil(warmup_share * steps)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = get_scheduler(
        "constant_with_warmup" if schedule == "constant" else schedule,
        optimizer,
        num_warmup_steps=warm_up,
        num_training_steps=steps,
    )
    for step in range(steps):
        share = share_of_peak(step, steps, schedule, warmup_share)
        expected = (step + 1) / warm_up if step < warm_up else theirs.get_last_lr()[0]
        assert share == pytest.approx(expected, abs=1e-12)
        optimizer.step()
        theirs.step()


VALUES: dict[str, Any] = {
    "lr_schedule": "cosine", "warmup_share": 0.5, "weight_decay": 0.3, "adam_beta2": 0.95, "clip_norm": 0.05,
}  # fmt: skip


def test_each_value_acts_and_resuming_stays_exact(run: Run, monkeypatch: pytest.MonkeyPatch):
    """The weights after some steps are those of torch's own AdamW with the gradients that were met."""
    import torch

    run.params.update(VALUES, tuning="full")
    gradients: list[list[Any]] = []
    replayed: list[tuple[Any, Any]] = []
    step = torch.optim.AdamW.step

    def watched(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        if not replayed:
            replayed.extend((weight, torch.nn.Parameter(weight.detach().clone())) for weight in weights)
        gradients.append([weight.grad.clone() for weight in weights])
        return step(optimizer, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    run.write().train()
    monkeypatch.undo()
    norms = [math.sqrt(sum(float(grad.pow(2).sum()) for grad in some)) for some in gradients]
    assert max(norms) <= VALUES["clip_norm"] * 1.001
    decaying = [twin for _, twin in replayed if twin.ndim > 1]
    others = [twin for _, twin in replayed if twin.ndim <= 1]
    plain = torch.optim.AdamW(
        [
            {"params": decaying, "weight_decay": VALUES["weight_decay"]},
            {"params": others, "weight_decay": 0.0},
        ],
        betas=(0.9, VALUES["adam_beta2"]),
        foreach=False,
    )
    assert decaying
    assert others
    for number, some in enumerate(gradients):
        for group in plain.param_groups:
            group["lr"] = run.params["learning_rate"] * share_of_peak(number, len(gradients), "cosine", 0.5)
        for (_, twin), gradient in zip(replayed, some, strict=True):
            twin.grad = gradient
        plain.step()
    for weight, twin in replayed:
        assert torch.allclose(weight, twin, atol=1e-6)
    told = [event["learning_rate"] for event in run.events("step")]
    peak = run.params["learning_rate"]
    assert told == pytest.approx([peak * share_of_peak(n, 6, "cosine", 0.5) for n in range(6)])


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_checkpoint_of_another_value_is_not_resumed(name: str):
    from trainer.recipes import DEFAULT_RECIPE

    plain, other = ({}, {name: VALUES[name]})
    identities = [DEFAULT_RECIPE.identity(DEFAULT_RECIPE.settings_of(params)) for params in (plain, other)]
    assert [key for key in identities[0] if identities[0][key] != identities[1][key]] == [name]
