"""Peaks of software that history does not have are those of physics, with doubt."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.stack import software_family
from knowledge.core.data.measurement import Measurement
from knowledge.core.evaluate import evaluation
from knowledge.core.model.estimators import SUREST
from knowledge.core.predict import store
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.core.predict.predictor import MEMORY_WIDTH, LearnedPredictor
from knowledge.core.predict.run_probability import pooled
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.predict.test_our_trainer import THEIRS, against_physics, history
from tests.knowledge.core.predict.test_peak_correction import OTHER, PRIOR, config, scores

ASKED = config(batch=3, gpu=OTHER)
probabilities = st.floats(SUREST, 1 - SUREST)


@cache
def learnt(factor: float, others: tuple[Measurement, ...] = ()) -> LearnedPredictor:
    """History of one stack, whose peaks are so many times those of physics, and other rows."""
    known = [replace(one, software="stack 1.2") for one in THEIRS]
    return evaluation.predictor([*history(known, factor), *others], CATALOGUE)


@pytest.mark.parametrize("factor", [0.75, 1.3])
def test_history_answers_for_its_own_software_in_any_version_and_for_no_other(factor: float) -> None:
    asked = [replace(ASKED, software=name) for name in ("stack 1.2", "stack 2.0", "rival 1.2", None)]
    found = against_physics(learnt(factor), asked)
    assert abs(found[0] - 1) > 0.15
    assert abs(found[1] - 1) > 0.15
    assert found[2:] == pytest.approx(1.0)


def test_the_interval_of_software_that_is_new_is_that_of_physics_at_least() -> None:
    known, new = (replace(ASKED, software=name) for name in ("stack 1.2", "rival 1.2"))
    found = scores(learnt(1.3), [known, new])
    width = np.log(found.memory_high / found.memory)
    assert width[1] >= MEMORY_WIDTH
    assert width[1] >= width[0]


def test_rates_of_software_that_is_new_are_as_unsure_as_by_physics_at_least() -> None:
    known, new = (replace(ASKED, software=name) for name in ("stack 1.2", "rival 1.2"))
    found, prior = scores(learnt(1.0), [known, new]), scores(PRIOR, [new])
    width = np.log(found.rate_high / found.rate)
    assert width[1] >= np.log(prior.rate_high / prior.rate)[0] > width[0]
    assert width[1] == pytest.approx(np.log(found.rate / found.rate_low)[1])


def test_what_new_software_leaves_unsaid_is_as_unsure_as_by_physics_alone() -> None:
    """Whether scores of 4,096 tokens are held decides if it fits."""
    long = replace(ASKED, tokens_per_sample=4096, gradient_checkpointing=False, software="rival 1.2")
    silent = replace(long, flash_attention=None)
    prior, found = (scores(one, [long, silent]) for one in (PRIOR, learnt(1.0)))
    assert (prior.p_valid >= MIN_P_VALID).tolist() == [True, False]
    assert (found.p_valid >= MIN_P_VALID).tolist() == [True, False]
    assert found.memory_high[1] >= prior.memory_high[1] > 1.5 * found.memory_high[0]


def test_what_history_holds_beyond_physics_makes_new_software_no_surer_to_run() -> None:
    """A size that fits by physics alone is doubted where other stacks took more."""
    sizes = [config(tokens=512, batch=batch, gpu=OTHER) for batch in range(1, 400, 3)]
    failed = tuple(
        Measurement(config=replace(one, software="stack 1.2"), status="oom", source="csv")
        for one in sizes[-60:]
    )
    asked = [replace(one, software="rival 1") for one in sizes]
    calm, wary = (scores(learnt(factor, failed), asked).p_valid for factor in (1.0, 1.3))
    assert (wary < calm - 0.1).any()
    assert not ((wary >= MIN_P_VALID) & (calm < MIN_P_VALID)).any()


def test_sizes_at_which_other_stacks_failed_are_not_refused_to_new_software_as_firmly() -> None:
    """The bounds of other stacks count as much as those of physics, by which there is room."""
    small = [config(tokens=256, batch=batch, gpu=OTHER) for batch in range(1, 60)]
    failed = tuple(
        Measurement(config=replace(one, software="stack 1.2"), status="oom", source="csv") for one in small
    )
    known, new = (
        scores(learnt(1.0, failed), [replace(one, software=name) for one in small]).p_valid
        for name in ("stack 1.2", "rival 1")
    )
    refused = known < 0.2
    assert refused.any()
    assert (new > known + 0.1)[refused].all()
    assert (new < MIN_P_VALID)[refused].all()


@given(one=probabilities, other=probabilities)
def test_a_pool_of_two_opinions_lies_between_them_whoever_is_named_first(one: float, other: float) -> None:
    found = float(pooled(np.array([one]), np.array([other]))[0])
    assert min(one, other) - 1e-6 <= found <= max(one, other) + 1e-6
    assert found == pytest.approx(float(pooled(np.array([other]), np.array([one]))[0]))


def test_a_stored_predictor_knows_whose_software_it_has() -> None:
    before = learnt(1.3)
    again = replace(before, knowledge=store.loads(store.dumps(before.knowledge), "it"))
    asked = [replace(ASKED, software=name) for name in ("stack 2.0", "rival 1.2")]
    assert against_physics(again, asked) == pytest.approx(against_physics(before, asked))


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("3.1.0", ""),
        ("fms-acceleration 2024-11-09", "fms-acceleration"),
        ("nemo-2.1", "nemo"),
        (None, "unknown"),
    ],
)
def test_a_family_is_the_name_without_versions(name: str | None, family: str) -> None:
    assert software_family(replace(ASKED, software=name)) == family


def test_copies_that_a_full_gpu_makes_room_for_are_no_reason_to_doubt() -> None:
    """Two GPUs of 80 GiB ran it, of which a peak with room to spare would take 84."""
    full = replace(
        ASKED,
        model_name="mistralai/Mistral-7B-v0.1",
        tuning="full",
        gpu_model="A100-SXM4-80GB",
        number_gpus=2,
        tokens_per_sample=4096,
        per_device_batch_size=4,
        gradient_accumulation_steps=1,
        optimizer_state="adamw-fp32",
        sharding="fsdp",
        software="rival 1.2",
    )
    c = columns([full], CATALOGUE)
    assert cost_model.memory(c).total[0] > c.memory[0] > cost_model.needed(c)[0]
    for one in (PRIOR, learnt(1.0)):
        assert scores(one, [full]).p_valid[0] > 0.5
