"""The predictor that answers now.

It is loaded once per process, and again when another version is promoted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from knowledge import selectors
from knowledge.catalogue.portal_catalogue import with_folders
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Inventory
from knowledge.core.model.fitted_model import FittedModel
from knowledge.core.predict.exact_matches import Observations
from knowledge.core.predict.predictor import LearnedPredictor
from knowledge.core.predict.store import BadPredictor
from knowledge.models import PredictorVersion
from knowledge.predictors import predictor_files
from knowledge.selectors import KnowledgeState

log = logging.getLogger(__name__)

OwnRuns = tuple[int, int, int]
"""The newest key of own runs, their number and the sum of their keys."""


def folder() -> Path:
    """Where predictor files are written to and loaded from, and nowhere else."""
    return Path(settings.DATA_DIR) / "predictors"


def predictor_for(state: KnowledgeState, catalogue: Catalogue, inventory: Inventory) -> LearnedPredictor:
    """The state's predictor with its own measurements, on the inventory's GPUs.

    Physics alone as long as none was trained, or where its file cannot be used: it then has no version.
    """
    knowledge = knowledge_of(state.active)
    known = _Loaded(state.number, state.active.sha256, knowledge) if state.active and knowledge else _Loaded()
    return _predictor(known, (state.last_own, *state.own_runs), catalogue, inventory)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The contents of a version's file, kept by number and digest."""

    number: int | None = None
    sha256: str = ""
    knowledge: Mapping[str, FittedModel] = field(default_factory=dict, compare=False)


# Kept between requests, so that the correction from own runs is learnt once after each new run.
@lru_cache(maxsize=2)
def _predictor(loaded: _Loaded, own: OwnRuns, catalogue: Catalogue, inventory: Inventory) -> LearnedPredictor:
    observations, known = _observations(own, catalogue)
    return LearnedPredictor(
        knowledge=loaded.knowledge,
        catalogue=_with_scarce(known, loaded.knowledge).on(inventory),
        observations=observations,
        version=loaded.number,
    )


def predictor_before(execution: int, catalogue: Catalogue, inventory: Inventory) -> LearnedPredictor:
    """Return the predictor that answered before the execution was recorded.

    It has no own measurements. It is physics alone in the same cases as `predictor_for`.
    """
    version = selectors.predictor_before(execution)
    knowledge = knowledge_of(version) or {}
    return LearnedPredictor(knowledge=knowledge, catalogue=_with_scarce(catalogue, knowledge).on(inventory))


def _with_scarce(catalogue: Catalogue, knowledge: Mapping[str, FittedModel]) -> Catalogue:
    """The catalogue with models in folders that the knowledge keeps runs of."""
    runs = (run for found in knowledge.values() for run in (*found.scarce, *found.scarce_peaks))
    return with_folders(catalogue, (run.config.model_name for run in runs))


def knowledge_of(version: PredictorVersion | None) -> Mapping[str, FittedModel] | None:
    """The fitted models of a version; None without a version or a usable file."""
    if version is None:
        return None
    try:
        return load_fitted(folder() / version.path, version.sha256)
    except BadPredictor as bad:
        log.error("predictor not usable", extra={"predictor": version.number, "reason": str(bad)})
        return None


@lru_cache(maxsize=2)
def load_fitted(path: Path, sha256: str) -> Mapping[str, FittedModel]:
    return predictor_files.load(path, sha256, folder())


@lru_cache(maxsize=1)
def _observations(own: OwnRuns, catalogue: Catalogue) -> tuple[Observations, Catalogue]:
    """Own runs, and the catalogue with those of their models that lie in folders.

    The cache holds until there is another run, one is unlearnt or learnt again, or the catalogue changes.
    """
    last, *_ = own
    rows = [run.row for run in selectors.own_runs(up_to=last)]
    known = with_folders(catalogue, (row.config.model_name for row in rows))
    return Observations.of(rows, known), known
