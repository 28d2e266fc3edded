"""Own runs correct predictions for the whole GPU model they ran on.

They do so only as far as the GPU model is unfamiliar, and correct nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config, Source
from knowledge.core.evaluate import evaluation
from knowledge.core.predict import store
from knowledge.core.predict.base import PredictionBatch, PriorPredictor
from knowledge.core.predict.exact_matches import RECENT, Observations
from knowledge.core.predict.predictor import LearnedPredictor
from tests.knowledge.conftest import CATALOGUE

MODELS = ("llama3.2-1b", "llama3.2-3b", "llama3.1-8b", "mistral-7b", "qwen2.5-7b")
GPU, OTHER = "H100-SXM5-80GB", "A100-SXM4-80GB"
PRIOR = LearnedPredictor(knowledge={}, catalogue=CATALOGUE)


def config(
    model: str = MODELS[0], tuning: str = "lora", batch: int = 4, tokens: int = 1024, gpu: str = GPU
) -> Config:
    return Config(
        model_name=model,
        tuning=tuning,
        gpu_model=gpu,
        number_gpus=1,
        tokens_per_sample=tokens,
        per_device_batch_size=batch,
        precision="bfloat16",
        gradient_checkpointing=True,
    )


ASKED = [config(model, tuning, batch) for model in MODELS for tuning in ("lora", "full") for batch in (1, 8)]


def scores(predictor: LearnedPredictor | PriorPredictor, asked: Sequence[Config] = ASKED) -> PredictionBatch:
    return predictor.score(asked, columns(asked, CATALOGUE))


def runs(configs: Sequence[Config], factors: Sequence[float]) -> list[Measurement]:
    """Own runs that were so many times as fast as physics says."""
    rates = PriorPredictor(catalogue=CATALOGUE).score(configs, columns(configs, CATALOGUE)).rate
    return [
        Measurement(config=one, status="ok", source="own", tokens_per_second=float(rate * factor))
        for one, rate, factor in zip(configs, rates, factors, strict=True)
    ]


def taught(rows: Sequence[Measurement], predictor: LearnedPredictor = PRIOR) -> LearnedPredictor:
    return replace(predictor, observations=Observations.of(rows, CATALOGUE))


def moved(predictor: LearnedPredictor, asked: Sequence[Config] = ASKED) -> np.ndarray:
    """ln of the factor between predictions with and without own runs."""
    without = replace(predictor, observations=Observations.of([], CATALOGUE))
    return np.log(scores(predictor, asked).rate / scores(without, asked).rate)


def width(predictor: LearnedPredictor, asked: Sequence[Config] = ASKED) -> np.ndarray:
    found = scores(predictor, asked)
    return np.log(found.rate_high / found.rate_low)


def test_predictions_that_own_runs_corrected_say_so_on_that_gpu_alone() -> None:
    here = taught(runs(ASKED[:1], [2.0]))
    assert set(scores(here).source[1:]) == {Source.OWN}
    assert set(scores(here, [config(gpu=OTHER)]).source) == {Source.PRIOR}


def test_without_own_runs_nothing_changes() -> None:
    with_none, physics = scores(taught([])), scores(PriorPredictor(catalogue=CATALOGUE))
    for name in ("rate", "rate_low", "rate_high", "memory", "p_valid"):
        assert np.array_equal(getattr(with_none, name), getattr(physics, name))


def test_runs_on_one_gpu_never_move_another() -> None:
    elsewhere = [replace(one, gpu_model=OTHER) for one in ASKED]
    predictor = taught(runs(ASKED, [0.5] * len(ASKED)))
    assert np.array_equal(
        scores(predictor, elsewhere).rate, scores(PriorPredictor(catalogue=CATALOGUE), elsewhere).rate
    )
    assert np.array_equal(width(predictor, elsewhere), width(PRIOR, elsewhere))


def test_runs_of_one_model_move_the_whole_unfamiliar_gpu_and_their_own_kind_most() -> None:
    predictor = taught(runs([config(batch=batch) for batch in (2, 4, 16)], [0.6] * 3))
    own, same_tuning, other_tuning = moved(
        predictor, [config(batch=8), config(MODELS[1], batch=8), config(MODELS[1], "full", 8)]
    )
    assert np.log(0.6) < own < same_tuning < other_tuning < -0.05


def test_the_more_runs_agree_the_closer_and_narrower_it_gets() -> None:
    queries = [config(MODELS[2], batch=2, tokens=700)]
    configs = [config(MODELS[n % 3], batch=2 ** (n % 5), tokens=512 + 16 * n) for n in range(40)]
    many = runs(configs, [0.6] * 40)
    predictors = [taught(many[:count]) for count in (0, 5, 10, 20, 40)]
    left = [float(abs(moved(one, queries)[0] - np.log(0.6))) for one in predictors]
    widths = [float(width(one, queries)[0]) for one in predictors]
    assert left == sorted(left, reverse=True)
    assert left[-1] < 0.05
    assert widths == sorted(widths, reverse=True)


def test_one_wild_run_among_ten_ruins_nothing() -> None:
    configs = [config(MODELS[n % 2], batch=2 ** (n % 5)) for n in range(10)]
    sound = moved(taught(runs(configs, [0.8] * 10)))
    wild = moved(taught(runs(configs, [0.8] * 9 + [0.02])))
    assert np.abs(wild - sound).max() < 0.15


def test_a_noisy_machine_is_believed_less_and_promises_less() -> None:
    configs = [config(MODELS[n % 2], batch=2 ** (n // 4), tokens=700) for n in range(12)]
    steady, noisy = (
        taught(runs(configs, [0.7 * off, 0.7 * off, 0.7 / off, 0.7 / off] * 3)) for off in (1.02, 2.0)
    )
    assert np.all(np.abs(moved(noisy)) < np.abs(moved(steady)))
    assert np.all(width(noisy) > width(steady))


def test_the_order_of_runs_does_not_matter_and_the_answer_is_always_the_same() -> None:
    rows = runs(ASKED, np.exp(np.random.default_rng(0).normal(0, 0.2, len(ASKED))).tolist())
    mixed = random.Random(0).sample(rows, len(rows))
    assert scores(taught(mixed)).rate == pytest.approx(scores(taught(rows)).rate, rel=1e-9)
    assert np.array_equal(scores(taught(rows)).rate, scores(taught(rows)).rate)


def test_a_model_trained_daily_does_not_push_out_the_runs_of_others() -> None:
    rare = runs([config(MODELS[1])], [1.0])
    daily = runs([config(batch=2 ** (n % 5)) for n in range(2 * RECENT)], [1.0] * 2 * RECENT)
    (kept,) = Observations.of(rare + daily, CATALOGUE).gpus.values()
    assert len(kept) == RECENT
    assert rare[0] in kept


THEIRS = [
    config(model, tuning, batch, tokens, gpu=OTHER)
    for model, tuning, batch, tokens in product(MODELS, ("lora", "full"), (1, 2, 4, 8), (512, 1024, 2048))
]
NOISE = np.exp(np.random.default_rng(1).normal(0, 0.05, len(THEIRS))).tolist()


@pytest.fixture(scope="module")
def history() -> list[Measurement]:
    """A hundred runs of others on one GPU model, none on the asked one, that hardly wait for the host."""
    rates = cost_model.throughput(columns(THEIRS, CATALOGUE))
    rows = zip(runs(THEIRS, NOISE), rates, NOISE, strict=True)
    return [replace(row, source="lfb", tokens_per_second=rate * factor) for row, rate, factor in rows]


@pytest.fixture(scope="module")
def learned(history: list[Measurement]) -> LearnedPredictor:
    return evaluation.predictor(history, CATALOGUE)


def test_on_a_familiar_gpu_other_models_hardly_move(learned: LearnedPredictor) -> None:
    familiar = [replace(one, gpu_model=OTHER) for one in ASKED]
    of_one = runs([config(batch=batch, gpu=OTHER) for batch in (1, 2, 4, 8, 16)], [0.7] * 5)
    predictor = taught(of_one, learned)
    same = np.array([one.model_name == MODELS[0] and one.tuning == "lora" for one in familiar])
    assert np.abs(moved(predictor, familiar)[~same]).max() < 0.01
    assert moved(predictor, familiar)[same].max() < -0.1


def test_runs_that_may_have_been_learnt_from_make_no_interval_narrower(learned: LearnedPredictor) -> None:
    familiar = [replace(one, gpu_model=OTHER) for one in ASKED]
    again = Observations.of(runs(familiar, [1.0] * len(familiar)), CATALOGUE)
    assert np.all(width(replace(learned, observations=again), familiar) >= width(learned, familiar) - 1e-9)


def test_an_unfamiliar_gpu_is_moved_and_its_intervals_shrink(learned: LearnedPredictor) -> None:
    rates = scores(learned).rate * 0.7
    rows = [
        Measurement(config=one, status="ok", source="own", tokens_per_second=float(rate))
        for one, rate in zip(ASKED, rates, strict=True)
    ]
    predictor = taught(rows[::2], learned)
    assert moved(predictor)[1::2] == pytest.approx(np.log(0.7), abs=0.15)
    assert np.all(width(predictor)[1::2] < width(learned)[1::2])


def test_a_handful_of_others_runs_on_a_gpu_counts_as_own_ones_do_and_is_kept_in_the_file(
    history: list[Measurement], learned: LearnedPredictor
) -> None:
    few = [
        Measurement(config=one, status="ok", source="lfb", tokens_per_second=float(rate * 0.7))
        for one, rate in zip(ASKED[::2], scores(learned).rate[::2], strict=True)
    ]
    predictor = evaluation.predictor([*history, *few], CATALOGUE)
    move = np.log(scores(predictor).rate / scores(learned).rate)
    assert np.all((move > np.log(0.7)) & (move < np.log(0.7) / 2))
    kept = store.loads(store.dumps(predictor.knowledge), "predictor.skops")
    again = LearnedPredictor(knowledge=kept, catalogue=CATALOGUE)
    assert scores(again).rate == pytest.approx(scores(predictor).rate)


def test_runs_that_wait_for_the_host_say_less_of_those_that_do_not() -> None:
    theirs = [replace(row, source="lfb") for row in runs(THEIRS, NOISE)]
    predictor = evaluation.predictor(theirs, CATALOGUE)
    small = ASKED[::2]
    rates = scores(predictor, small).rate * 0.7
    rows = [
        Measurement(config=one, status="ok", source="own", tokens_per_second=float(rate))
        for one, rate in zip(small, rates, strict=True)
    ]
    found = moved(taught(rows, predictor)) / np.log(0.7)
    assert np.all((found[::2] > 0.9) & (found[1::2] > 0.4) & (found[1::2] < 0.7))
