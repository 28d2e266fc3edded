"""Settings that bind at dispatch: all are tried and explained, and another one changes no prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from knowledge.core.analytic.config_table import columns
from knowledge.core.domain import config_space
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config
from knowledge.core.model import features
from knowledge.core.model.estimators import Forest
from knowledge.models import CONFIG_COLUMNS, Execution, config_values
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.analytic.test_peak_memory import CONFIGS
from trainer.recipes import Binds, Param

PLACES = ("gpu_model", "number_gpus", "number_nodes")
SIZES = ("per_device_batch_size", "gradient_accumulation_steps")
BOUND = {"tuning": "lora", "precision": "bfloat16"}
NAME = "fast_kernels"  # a field of configurations that no parameter of ours sets


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting more, as its checklist adds it."""
    param = Param(kind=bool, binds=Binds.DISPATCH, default=False, help="Fused kernels.")
    monkeypatch.setitem(config_space.PARAMS, NAME, param)  # type: ignore[arg-type]
    monkeypatch.setattr(config_space, "OTHER_SETTINGS", (NAME,))
    monkeypatch.setattr(config_space, "USUAL", {NAME: False})


def test_every_parameter_that_binds_at_dispatch_is_a_place_a_size_or_tried() -> None:
    assert set(config_space.DISPATCH) == {*PLACES, *SIZES, *config_space.SETTINGS}


@pytest.mark.parametrize("name", config_space.SETTINGS)
@pytest.mark.parametrize("gpus", [1, 8])
def test_every_value_that_is_tried_has_its_reason(name: str, gpus: int) -> None:
    values = config_space.candidate_values(name, "A100-SXM4-80GB", gpus, BOUND)
    assert values
    assert set(values) <= config_space.PARAMS[name].reasons.keys()


def test_predictors_from_before_a_setting_say_what_they_said(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = [replace(config, fast_kernels=None) for config in CONFIGS]
    before = matrices(configs)
    forests = [Forest(trees=20).fit(X, np.arange(len(X), dtype=float), np.ones(len(X))) for X in before]
    request.getfixturevalue("added")
    for forest, old, new in zip(forests, before, matrices(configs), strict=True):
        assert new.shape[1] == old.shape[1] + 1
        assert np.array_equal(new[:, :-1], old, equal_nan=True)
        assert np.array_equal(forest.predict(new), forest.predict(old))


def matrices(configs: list[Config]) -> list[Array]:
    c = columns(configs, CATALOGUE)
    return [features.matrix(configs, c, {}), features.validity_matrix(configs, c, np.zeros(len(c)))]


@pytest.mark.usefixtures("added")
def test_a_setting_is_read_by_its_type() -> None:
    configs = [replace(CONFIGS[0], fast_kernels=value) for value in (None, False, True)]
    rates, validity = matrices(configs)
    assert np.array_equal(rates[:, -1], [np.nan, 0.0, 1.0], equal_nan=True)
    assert validity[:, -1].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.usefixtures("added")
def test_a_setting_at_its_default_makes_no_run_another_one() -> None:
    hashes = [
        config_space.config_hash(replace(CONFIGS[0], fast_kernels=value)) for value in (None, False, True)
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_executions_keep_what_has_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(CONFIGS[0], fast_kernels=True)
    columns_left = tuple(name for name in CONFIG_COLUMNS if name != NAME)
    monkeypatch.setattr("knowledge.models.CONFIG_COLUMNS", columns_left)
    monkeypatch.setattr("knowledge.models.CONFIG_SETTINGS", (NAME,))
    assert config_values(config)["settings"] == {NAME: True}
    assert Execution(**config_values(config)).config == config
    assert config_values(replace(config, fast_kernels=None))["settings"] == {}
