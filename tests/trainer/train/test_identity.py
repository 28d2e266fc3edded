"""The values that a checkpoint must agree on follow from the one table of parameters."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from trainer import recipes
from trainer.recipes import SFT, Binds, Param
from trainer.train import settings
from trainer.train.settings import STATED_OTHERWISE, TrainingSettings


def test_every_value_that_changes_what_is_learnt_is_in_the_identity() -> None:
    identity = TrainingSettings.of({}).identity
    assert identity.keys() | STATED_OTHERWISE == set(SFT.binding(Binds.SUBMIT))
    assert identity["learning_rate"] == SFT.params["learning_rate"].default


def test_values_of_where_and_how_it_runs_are_not() -> None:
    assert not TrainingSettings.of({}).identity.keys() & set(SFT.binding(Binds.DISPATCH))


def test_a_new_parameter_cannot_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    warmup = Param(kind=float, binds=Binds.SUBMIT, default=0.0, help="Share of steps.")
    more = replace(SFT, params=MappingProxyType({**SFT.params, "warmup": warmup}))
    made = TrainingSettings.of({})
    monkeypatch.setattr(settings, "SFT", more)
    with pytest.raises(AttributeError, match="warmup"):
        _ = made.identity
    assert "warmup" not in recipes.SFT.params
