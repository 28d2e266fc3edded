"""The parts of a prediction's memory.

The fitted parts are shown, and the part to which their shortfall is attributed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.peak_memory import GATHERED, PeakMemory, peak_parts
from knowledge.core.domain.types import Config, Interval, Option, Source
from knowledge.core.model.fitted_model import FittedModel
from knowledge.core.model.regressor import Regressor
from knowledge.core.model.training_support import TrainingSupport
from knowledge.core.predict.memory_parts import REST, memory_parts
from tests.knowledge.conftest import CATALOGUE
from tests.knowledge.core.analytic.test_peak_memory import CONFIGS, HASHES

FULL = replace(CONFIGS[0], tuning="full", number_gpus=8, per_device_batch_size=4, tokens_per_sample=2048)
LORA = replace(FULL, tuning="lora", lora_r=512, target_modules="all-linear")
WEIGHTS = np.array(
    [1.2, 1.0, 1.1, 0.9, 0.7, 0.8, 1.1, 0.6, 1.7, 0.5, 1.5, 3.0, 2.0, 0.8, 0.7, 1.2, 0.9, 1.1, 0.9, 1.1]
)


def learnt() -> dict[str, FittedModel]:
    """A correction learnt of the prior's peaks, each part times a factor."""
    c = columns(CONFIGS, CATALOGUE)
    regressor = Regressor(PeakMemory)
    regressor.physics_ = PeakMemory().fit(c, np.minimum(peak_parts(c) @ WEIGHTS, c.memory), HASHES)
    seen = TrainingSupport.of(CONFIGS, c)
    return {
        "gpu": FittedModel(
            rows=len(CONFIGS), vocabulary={}, rate=regressor, memory=regressor, validity=None, seen=seen
        )
    }


def option(config: Config, peak: float) -> Option:
    unknown = Interval(1.0)
    return Option(
        config=config, p_valid=1.0, tokens_per_second=unknown, peak_memory_bytes=Interval(peak),
        startup_s=0.0, duration_s=unknown, cost=unknown, source=Source.MODEL,
    )  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS[::5])
def test_what_is_held_makes_the_fitted_peak(config: Config) -> None:
    physics, c = learnt()["gpu"].memory.physics_, columns([config], CATALOGUE)  # type: ignore[union-attr]
    held = physics.held(c)  # type: ignore[attr-defined]
    assert sum(held.values()) == pytest.approx(physics.value(c))
    stated = cost_model.memory(c)
    assert held["gradients"] * stated.weights == pytest.approx(held["weights"] * stated.gradients)


@pytest.mark.parametrize("config", [FULL, LORA])
def test_the_fitted_parts_are_told_largest_first_and_make_the_prediction(config: Config) -> None:
    knowledge = learnt()
    c = columns([config], CATALOGUE)
    peak = float(knowledge["gpu"].memory.physics_.value(c)[0])  # type: ignore[union-attr]
    reported = memory_parts(option(config, 1.1 * peak), knowledge, CATALOGUE)
    named = [value for name, value in reported.items() if name != REST]
    assert named == sorted(named, reverse=True)
    assert sum(reported.values()) == pytest.approx(1.1 * peak)
    assert {"weights", "activations", "logits", GATHERED, "overhead"} <= set(reported)
    assert ("optimiser" in reported) == (config is FULL)
    assert ("adapters" in reported) == (config is LORA)


def test_what_the_physics_misses_is_borne_by_what_hangs_on_the_software() -> None:
    knowledge = learnt()
    held = knowledge["gpu"].memory.physics_.held(columns([FULL], CATALOGUE))  # type: ignore[union-attr, attr-defined]
    more = memory_parts(option(FULL, 1.3 * float(sum(held.values())[0])), knowledge, CATALOGUE)
    assert more["optimiser"] == pytest.approx(held["optimizer"][0])
    grown = [more[name] / held[name][0] for name in ("activations", "logits", GATHERED)]
    assert grown[0] > 1.1
    assert grown == pytest.approx([grown[0]] * 3)


def test_a_prediction_below_the_states_alone_scales_all_parts() -> None:
    reported = memory_parts(option(FULL, 1e9), learnt(), CATALOGUE)
    assert sum(reported.values()) == pytest.approx(1e9)
    assert min(reported.values()) > 0


def test_where_no_peak_was_learnt_the_parts_are_those_of_the_prior() -> None:
    stated = cost_model.memory(columns([FULL], CATALOGUE))
    reported = memory_parts(option(FULL, float(stated.total[0])), {}, CATALOGUE)
    assert reported["optimiser"] == pytest.approx(stated.optimizer[0])
    assert reported[GATHERED] == pytest.approx(stated.gathered[0])


def test_of_a_tiny_model_the_base_weights_are_told_and_the_sum_is_the_peak() -> None:
    tiny = replace(LORA, model_name="builtin/tiny-llama", number_gpus=1, gpu_model="cpu", precision="float32")
    peak = 588.0 * 2**20
    reported = memory_parts(option(tiny, peak), {}, CATALOGUE)
    assert sum(reported.values()) == pytest.approx(peak)
    assert 0 < reported["weights"] < 0.05 * peak
