"""The fused optimiser and the plain one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.trainer.runs import Run

pytestmark = pytest.mark.torch


def test_both_learn_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    adam = torch.optim.AdamW

    def noted(*arguments: Any, fused: bool, **more: Any) -> torch.optim.Optimizer:
        made.append(fused)
        return adam(*arguments, fused=fused, **more)

    monkeypatch.setattr(torch.optim, "AdamW", noted)
    run.params.update(max_steps=3)
    run.write().train()
    plain = Run(run.path.with_name("plain"), run.models_dir, params={**run.params, "fused_optimizer": False})
    plain.write().train()
    assert made == [True, False]
    assert plain.losses == pytest.approx(run.losses, rel=1e-3)
