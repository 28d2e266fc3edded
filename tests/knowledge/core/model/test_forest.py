"""Trees where runs repeat, thrash, or come from a GPU with few measurements."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from knowledge.core.analytic.config_table import columns
from knowledge.core.data import splits
from knowledge.core.data.splits import Dataset
from knowledge.core.domain import config_space
from knowledge.core.model.estimators import Ensemble, Forest, classifiers
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.analytic.test_step_time import BASE


def test_a_run_that_thrashed_its_memory_says_little_about_its_neighbours() -> None:
    sizes = np.linspace(0.0, 1.0, 41)
    slow = np.where(sizes == 0.5, -2.0, 0.0)
    forest = Forest().fit(sizes[:, None], slow, np.ones(41))
    near = np.array([[0.48]])
    said = [tree.predict(near)[0] for tree in forest.trees_.estimators_]
    assert np.mean(said) < -0.1
    assert forest.predict(near)[0] == pytest.approx(0.0, abs=1e-6)


def test_a_column_without_any_value_is_left_out() -> None:
    X = np.column_stack([np.arange(20.0), np.full(20, np.nan)])
    forest = Forest().fit(X, np.arange(20.0), np.ones(20))
    assert forest.columns_.tolist() == [True, False]
    assert forest.predict(np.array([[3.0, 7.0]]))[0] == pytest.approx(3.0, abs=0.5)


def test_few_runs_on_a_new_gpu_count_beside_many_on_another() -> None:
    many = [replace(BASE, per_device_batch_size=batch) for batch in range(1, 101)]
    few = [replace(BASE, gpu_model="L40S", per_device_batch_size=batch) for batch in range(1, 5)]
    configs = [*many, *few]
    hashes = [config_space.config_hash(x) for x in configs]
    rows = Dataset(configs, hashes, columns(configs, CATALOGUE), np.zeros((104, 0)), np.ones(104))
    counts = splits.importance(rows)
    assert counts[:100].sum() == pytest.approx(10.0)
    assert counts[100:].sum() == pytest.approx(2.0)


def test_four_repeats_count_as_much_as_two_runs() -> None:
    configs = [BASE] * 4 + [replace(BASE, per_device_batch_size=2)]
    hashes = [config_space.config_hash(x) for x in configs]
    counts = splits.importance(
        Dataset(configs, hashes, columns(configs, CATALOGUE), np.zeros((5, 0)), np.ones(5))
    )
    assert counts[:4].sum() == pytest.approx(2 * counts[4])


def test_classifiers_answer_as_their_own_way_does() -> None:
    noise = np.random.default_rng(0)
    X = noise.normal(size=(200, 4))
    X[noise.random(X.shape) < 0.1] = np.nan
    ensemble = Ensemble(partial(classifiers, 20)).fit(X, (np.nan_to_num(X[:, 0]) > 0).astype(int))
    boosted, forest = ensemble.members_
    by_their_own = [boosted.predict_proba(X), forest.predict_proba(np.nan_to_num(X, nan=-1.0))]
    assert ensemble.predict(X) == pytest.approx(np.mean(by_their_own, axis=0)[:, 1])
