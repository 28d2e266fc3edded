"""The loss of the recipe `weighted` is that of supervised fine-tuning, several times."""

from __future__ import annotations

import pytest

from tests.trainer.runs import Run

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("params", "weight"), [({}, 2.0), ({"loss_weight": 3.0}, 3.0)])
def test_the_loss_counts_several_times(run: Run, params: dict[str, float], weight: float) -> None:
    run.params.update(max_steps=1)
    run.write().train()
    own = {**run.params, **params}
    weighted = Run(run.path.with_name("weighted"), run.models_dir, params=own, node={"recipe": "weighted"})
    assert weighted.write().train()["outcome"] == "succeeded"
    assert weighted.losses[1] == pytest.approx(weight * run.losses[1], rel=1e-5)


def test_its_own_parameter_is_checked(run: Run) -> None:
    run.params.update(loss_weight=20.0)
    run.node = {"recipe": "weighted"}
    assert "loss_weight must be between 0.5 and 10" in run.write().train()["reason"]
