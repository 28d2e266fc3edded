"""Measured peaks correct physics on a GPU, with or without rates, and never shrink caution by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.types import Config, Source
from knowledge.core.evaluate import evaluation
from knowledge.core.predict import store
from knowledge.core.predict.base import MIN_P_VALID, PredictionBatch
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.peak_correction import STEP
from knowledge.core.predict.predictor import LearnedPredictor
from tests.knowledge.conftest import CATALOGUE

MODELS = ("llama3.2-1b", "llama3.2-3b", "llama3.1-8b", "mistral-7b", "qwen2.5-7b")
GPU, OTHER = "L4", "A100-SXM4-80GB"
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
        optimizer_state="adamw-bf16",
        flash_attention=True,
        target_modules="all-linear",
        unquantized_float32=False,
        gradient_checkpointing=True,
    )


def scores(predictor: LearnedPredictor, asked: Sequence[Config]) -> PredictionBatch:
    return predictor.score(asked, columns(asked, CATALOGUE))


def shares(configs: Sequence[Config], predictor: LearnedPredictor = PRIOR) -> Array:
    return scores(predictor, configs).memory / columns(configs, CATALOGUE).memory


def peaks(
    configs: Sequence[Config], factor: float | Array = 1.0, *, rates: bool = False
) -> list[Measurement]:
    """Runs that took so many times what physics says, those that fit, with or without rates."""
    found = np.broadcast_to(shares(configs) * factor, len(configs))
    return [
        Measurement(
            config=one, status="ok", source="own", peak_memory_fraction=float(share),
            tokens_per_second=float(scores(PRIOR, [one]).rate[0]) if rates else None,
        )
        for one, share in zip(configs, found, strict=True) if share < 1
    ]  # fmt: skip


def taught(rows: Sequence[Measurement], predictor: LearnedPredictor = PRIOR) -> LearnedPredictor:
    return replace(predictor, observations=Observations.of(rows, CATALOGUE))


def moved(predictor: LearnedPredictor, asked: Sequence[Config]) -> Array:
    """ln of the factor between peaks with and without runs."""
    without = replace(predictor, observations=Observations.of([], CATALOGUE))
    return np.log(scores(predictor, asked).memory / scores(without, asked).memory)


@pytest.mark.parametrize("rates", [False, True])
def test_peaks_teach_memory_with_or_without_rates_and_nothing_else(rates: bool) -> None:
    rows = peaks(
        [config(model, batch=batch) for model in MODELS[:2] for batch in (1, 2, 4, 8)], 1.3, rates=rates
    )
    queries = [config(batch=3), config(MODELS[2], batch=1), config(MODELS[3], "qlora", 2), config(gpu=OTHER)]
    of_own, of_others, of_another_way, elsewhere = moved(taught(rows), queries)
    assert np.log(1.3) * 0.7 < of_own < np.log(1.35)
    assert 0.3 * np.log(1.3) < of_others < np.log(1.35)
    assert 0 < of_another_way < of_others
    assert elsewhere == 0
    if not rates:
        assert np.array_equal(scores(taught(rows), queries).rate, scores(PRIOR, queries).rate)
        assert set(scores(taught(rows), queries).source) == {Source.PRIOR}


def test_one_term_that_is_off_moves_what_consists_of_it() -> None:
    c = columns([long := config(tokens=4096, batch=2), config(MODELS[2], tokens=128, batch=1)], CATALOGUE)
    stated = cost_model.memory(c)
    assert (stated.logits / stated.total)[0] > 0.4 > 0.1 > (stated.logits / stated.total)[1]
    runs = [config(tokens=tokens, batch=batch) for tokens in (128, 2048, 4096) for batch in (1, 2)]
    logits = cost_model.memory(columns(runs, CATALOGUE)).logits / columns(runs, CATALOGUE).memory
    rows = peaks(runs, 1 + 0.4 * logits / shares(runs))
    of_logits, of_weights = moved(
        taught(rows), [replace(long, model_name=MODELS[1]), config(MODELS[2], tokens=128, batch=1)]
    )
    assert of_logits > 3 * abs(of_weights)


def test_errors_of_a_mixture_say_little_of_other_models_and_much_of_mixtures() -> None:
    experts, alike = "ibm-granite/granite-3.1-3b-a800m-instruct", "ibm-granite/granite-3.0-1b-a400m-base"
    rows = peaks([config(experts, batch=batch) for batch in (1, 2, 4, 8)], 1.3)
    of_alike, of_plain = moved(taught(rows), [config(alike), config(MODELS[0])])
    assert of_alike > 0.05
    assert abs(of_plain) < 0.1 * of_alike


def test_one_wild_peak_changes_nothing_and_the_order_of_runs_does_not_matter() -> None:
    some = [config(model, batch=batch) for model in MODELS[:2] for batch in (1, 2, 4)]
    rows, queries = peaks(some, 1.2), [config(MODELS[2], batch=1)]
    wild = replace(rows[0], config=config(batch=3), peak_memory_fraction=0.001)
    assert moved(taught([*rows, wild]), queries) == pytest.approx(moved(taught(rows), queries))
    assert moved(taught([wild]), queries) == 0
    assert moved(taught(rows[::-1]), queries) == pytest.approx(moved(taught(rows), queries))


def test_higher_peaks_lower_the_promise_and_lower_ones_raise_it_where_they_are_near() -> None:
    sizes = [config(tokens=512, batch=batch) for batch in range(1, 120)]
    near = next(one for one in sizes if shares([one])[0] > 0.85)
    some = [one for one in sizes[::6] if shares([one])[0] < 0.85]
    before = scores(PRIOR, [near]).p_valid[0]
    assert scores(taught(peaks(some, 1.15)), [near]).p_valid[0] < MIN_P_VALID < before
    full = next(one for one in sizes if shares([one])[0] > 1.02)
    beside = [one for one in sizes[::5] if shares([one])[0] < 1.3]
    unsure, sure = (scores(taught(peaks(runs, 0.7)), [full]).p_valid[0] for runs in (some, beside))
    assert scores(PRIOR, [full]).p_valid[0] == unsure < 0.5 < sure


def test_intervals_of_peaks_keep_what_equal_runs_differ_by() -> None:
    """A job's peak may lie a few per cent above those of five equal tests."""
    one, before = [config()], scores(PRIOR, [config()])
    after = scores(taught(peaks(one * 5)), one)
    assert after.memory[0] == pytest.approx(before.memory[0], rel=1e-3)
    assert 1.06 < after.memory_high[0] / after.memory[0] < before.memory_high[0] / before.memory[0]
    assert 1.06 < after.memory[0] / after.memory_low[0] < before.memory[0] / before.memory_low[0]


def drawn(random: np.random.Generator, count: int) -> list[Config]:
    return [
        replace(
            config(str(random.choice(MODELS)), str(random.choice(["full", "lora", "qlora"]))),
            tokens_per_sample=int(2 ** random.integers(7, 13)),
            per_device_batch_size=int(2 ** random.integers(0, 6)),
            gradient_checkpointing=bool(random.integers(2)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_runs_of_a_new_setting_far_from_the_limit_narrow_no_margin_there(seed: int) -> None:
    """Over random histories, with what they measured off by random factors."""
    random = np.random.default_rng(seed)
    new = {"tuning": "lora", "gradient_checkpointing": False}
    known = [x for x in drawn(random, 40) if (x.tuning, x.gradient_checkpointing) != ("lora", False)]
    few = [x for x in (replace(x, **new) for x in drawn(random, 60)) if shares([x])[0] < 0.3][:8]
    queries = [replace(x, **new) for x in drawn(random, 80)]
    limit = shares(queries) > 2 * STEP * shares(few).max()
    history = peaks(known, np.exp(random.normal(0, 0.2, len(known))))
    far = peaks(few, np.exp(random.normal(random.normal(0, 0.2), 0.05, len(few))))
    before, after = (scores(taught(rows), queries) for rows in (history, [*history, *far]))
    assert limit.sum() > 5
    width = [np.log(one.memory_high / one.memory)[limit] for one in (before, after)]
    assert np.all(width[1] >= width[0] - 1e-9)
    gained = (after.p_valid >= MIN_P_VALID) & (before.p_valid < MIN_P_VALID)
    assert not gained[limit & (shares(queries) > 1)].any()


@pytest.fixture(scope="module")
def learned() -> LearnedPredictor:
    """A predictor from a hundred runs of others, with peaks, on another GPU."""
    configs = [
        config(model, tuning, batch, tokens, gpu=OTHER)
        for model, tuning in product(MODELS, ("lora", "full"))
        for batch, tokens in product((1, 2, 4), (256, 512, 1024))
    ]  # fmt: skip
    noise = np.exp(np.random.default_rng(1).normal(0, 0.05, len(configs)))
    rows = [replace(row, source="lfb") for row in peaks(configs, noise, rates=True)]
    return evaluation.predictor(rows, CATALOGUE)


def test_where_history_answers_peaks_move_their_model_and_tuning_alone(learned: LearnedPredictor) -> None:
    share = float(1.3 * shares([config()], learned)[0])
    row = replace(peaks([config()])[0], peak_memory_fraction=share)
    same, others = [config(batch=2)], [config(MODELS[1]), config(tuning="full", batch=1)]
    assert moved(taught([row], learned), same)[0] > 0.05
    assert np.array_equal(moved(taught([row], learned), others), [0.0, 0.0])


def test_imported_peaks_on_a_gpu_with_a_handful_count_as_own_ones_do_and_are_kept_in_the_file() -> None:
    rated = [config(model, batch=batch, gpu=OTHER) for model in MODELS for batch in range(1, 10)]
    history = [replace(row, source="lfb", peak_memory_fraction=None) for row in peaks(rated, rates=True)]
    few = [replace(row, source="csv") for row in peaks([config(batch=batch) for batch in (1, 2, 4, 8)], 1.3)]
    predictor = evaluation.predictor([*history, *few], CATALOGUE)
    queries = [config(batch=3), config(MODELS[1], batch=2)]
    without = evaluation.predictor(history, CATALOGUE)
    assert np.all(scores(predictor, queries).memory > 1.05 * scores(without, queries).memory)
    kept = store.loads(store.dumps(predictor.knowledge), "predictor.skops")
    again = LearnedPredictor(knowledge=kept, catalogue=CATALOGUE)
    assert scores(again, queries).memory == pytest.approx(scores(predictor, queries).memory)
