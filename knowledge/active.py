"""The predictor that answers now: loaded once per process, reloaded when another version is promoted."""

from __future__ import annotations

from collections.abc import Mapping

from knowledge.core.columns import Hardware
from knowledge.core.predictor import PriorPredictor, Scorer


def predictor_for(here: Mapping[str, Hardware]) -> Scorer:
    """The active predictor on the given hardware; physics alone as long as none was trained."""
    return PriorPredictor(here=here)
