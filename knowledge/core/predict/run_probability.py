"""The probability that a configuration runs, by a classifier and by physics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from knowledge.core.analytic.config_table import ConfigTable
from knowledge.core.domain.arrays import Array, Mask
from knowledge.core.domain.types import Config
from knowledge.core.model import features
from knowledge.core.model.estimators import SUREST
from knowledge.core.model.fitted_model import FittedModel, pressure
from knowledge.core.predict.base import MEASURED_MARGIN, MIN_P_VALID, fit_probability

# Of unfamiliar runs nearly sure to fit whose prediction leaves a fifth of the memory free, 61 of 63 ran
# (models and GPUs left out of training): as many as a recommendation asks for.
NEARLY_SURE, ROOM = 0.85, 0.8


def run_probability(
    knowledge: FittedModel,
    configs: Sequence[Config],
    c: ConfigTable,
    fits: Array,
    doubtful: Array,
    foreign: Mask,
) -> Array:
    """Return the classifier's probabilities.

    Of software that history does not have, the classifier knows the bounds of other stacks alone, so its
    probabilities are pooled with those of stated physics. Where little or nothing was measured, the memory
    predictions may lower them.

    fits: probabilities to fit by stated physics, (n,).
    doubtful: bytes of one GPU that such rows are suspected to need, 0 for the others.
    foreign: rows of software that history does not have.
    """
    if knowledge.validity is None:
        return fits
    X = features.validity_matrix(configs, c, pressure(knowledge.memory, c))
    raw = knowledge.validity.ensemble.predict(X)
    learned = knowledge.validity.calibration.predict(raw)
    learned = np.where(foreign, pooled(learned, fits), learned)
    doubted = np.minimum(fits, fit_probability(c.memory / np.maximum(doubtful, 1.0), MEASURED_MARGIN))
    return np.where(doubtful > 0, np.minimum(learned, doubted), learned)


def pooled(one: Array, other: Array) -> Array:
    """Return the logarithmic pool of two opinions of equal weight, (n,).

    Neither counts as surer than a calibrated one is. Source: Genest and Zidek 1986.
    """
    found: Array = 1 / (1 + np.exp(-(_logit(one) + _logit(other)) / 2))
    return found


def reassured(p_valid: Array, share: Array) -> Array:
    """Return p_valid, raised where steps of the calibration hold it just too low.

    It is raised to the value that a recommendation may risk, if the prediction leaves room.

    share: of the GPU's memory that the prediction takes.
    """
    roomy = (p_valid >= NEARLY_SURE) & (share <= ROOM)
    return np.where(roomy, np.maximum(p_valid, MIN_P_VALID), p_valid)


def _logit(probability: Array) -> Array:
    known = np.clip(probability, SUREST, 1 - SUREST)
    found: Array = np.log(known / (1 - known))
    return found
