"""The predictor that answers now: loaded once per process, loaded anew when another version is promoted."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from knowledge import selectors
from knowledge.core.analytic.config_table import Hardware
from knowledge.core.model.fitted_model import FittedModel
from knowledge.core.predict import store
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor
from knowledge.models import PredictorVersion
from knowledge.selectors import KnowledgeState

log = logging.getLogger(__name__)


def folder() -> Path:
    """Where predictor files are written to and loaded from, and nowhere else."""
    return Path(settings.DATA_DIR) / "predictors"


def predictor_for(state: KnowledgeState, here: Mapping[str, Hardware]) -> LearnedPredictor:
    """The state's predictor with its own measurements, on the given hardware.

    Physics alone as long as none was trained, or where its file cannot be used: it then has no version.
    """
    knowledge = knowledge_of(state.active)
    return LearnedPredictor(
        knowledge=knowledge or {},
        observations=_observations(state.last_own),
        here=here,
        version=state.number if knowledge is not None else None,
    )


def predictor_before(execution: int, here: Mapping[str, Hardware]) -> LearnedPredictor:
    """The predictor that answered before the execution was recorded, without any own measurement.

    Physics alone as `predictor_for`.
    """
    version = selectors.predictor_before(execution)
    return LearnedPredictor(knowledge=knowledge_of(version) or {}, here=here)


def knowledge_of(version: PredictorVersion | None) -> Mapping[str, FittedModel] | None:
    """The fitted models of a version; None without a version or a usable file."""
    if version is None:
        return None
    try:
        return _load(folder() / version.path, version.sha256)
    except store.BadPredictor as bad:
        log.error("predictor not usable", extra={"predictor": version.number, "reason": str(bad)})
        return None


@lru_cache(maxsize=2)
def _load(path: Path, sha256: str) -> Mapping[str, FittedModel]:
    return store.load(path, sha256, folder())


@lru_cache(maxsize=1)
def _observations(last_own: int) -> Observations:
    """`last_own` names the newest own execution: the cache holds until there is another."""
    return Observations.of([row.row for row in selectors.own_runs(up_to=last_own)])
