"""Predictors as bytes.

They are skops, never pickle: only listed types come to life on loading. skops is imported where it is
needed: with scikit-learn behind it, it takes a second.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from knowledge.core.analytic.peak_memory import PeakMemory
from knowledge.core.analytic.step_time import StepTime
from knowledge.core.data.measurement import Measurement
from knowledge.core.domain.types import Config
from knowledge.core.model import estimators
from knowledge.core.model.estimators import Ensemble, Forest, ProbabilityMap
from knowledge.core.model.fitted_model import FittedModel, Validity
from knowledge.core.model.intervals import Widths
from knowledge.core.model.own_peaks import OwnPeaks
from knowledge.core.model.regressor import AnalyticModel, Regressor
from knowledge.core.model.training_support import TrainingSupport

FORMAT = 36  # to be raised whenever prior or features change: corrections belong to what they were learnt on
TRUSTED = (
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)


class BadPredictor(ValueError):
    """A predictor file is missing, was changed, or holds types that are not allowed."""


def dumps(knowledge: Mapping[str, FittedModel]) -> bytes:
    """The content of a file that holds the knowledge of each kind."""
    import skops.io

    raw = {"format": FORMAT, "kinds": {kind: _to_values(found) for kind, found in knowledge.items()}}
    data: bytes = skops.io.dumps(raw, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    return data


def loads(data: bytes, name: str) -> dict[str, FittedModel]:
    """The inverse of `dumps`. Raises BadPredictor, which names the file by `name`."""
    import skops.io

    strange = sorted(set(skops.io.get_untrusted_types(data=data)) - set(TRUSTED))
    if strange:
        raise BadPredictor(f"{name} holds types that are not allowed: {', '.join(strange)}")
    raw: dict[str, Any] = skops.io.loads(data, trusted=list(TRUSTED))
    if raw.get("format") != FORMAT:
        raise BadPredictor(f"{name} has format {raw.get('format')}, not {FORMAT}; train a new predictor")
    return {kind: _from_values(values) for kind, values in raw["kinds"].items()}


def _to_values(found: FittedModel) -> dict[str, Any]:
    seen = asdict(found.seen)
    return {
        "rows": found.rows,
        "vocabulary": found.vocabulary,
        "rate": _regressor(found.rate),
        "memory": found.memory and _regressor(found.memory),
        "validity": found.validity and _validity(found.validity),
        "scarce": [asdict(row) for row in found.scarce],
        "scarce_peaks": [asdict(row) for row in found.scarce_peaks],
        "own_peaks": {k: sorted(v) for k, v in asdict(found.own_peaks).items()},
        "seen": {k: sorted(v) if isinstance(v, frozenset) else dict(v) for k, v in seen.items()},
    }


def _regressor(found: Regressor) -> dict[str, Any]:
    return {
        "weights": found.physics_.weights_,
        "apart": found.apart_,
        "columns": found.forest_.columns_,
        "trees": found.forest_.trees_,
        "widths": {
            "pooled": found.widths_.pooled,
            "by_kind": dict(found.widths_.by_kind),
            "by_gpu": dict(found.widths_.by_gpu),
        },
        "unseen_widths": found.unseen_widths_,
        "believed": found.believed_,
        "runs": found.runs_,
    }


def _validity(found: Validity) -> dict[str, Any]:
    return {
        "columns": found.ensemble.columns_,
        "members": found.ensemble.members_,
        "raw": found.calibration.raw_,
        "calibrated": found.calibration.calibrated_,
    }


def _from_values(raw: dict[str, Any]) -> FittedModel:
    seen: dict[str, Any] = {k: frozenset(v) if isinstance(v, list) else v for k, v in raw["seen"].items()}
    return FittedModel(
        rows=raw["rows"],
        vocabulary=raw["vocabulary"],
        rate=_read_regressor(raw["rate"], StepTime),
        memory=raw["memory"] and _read_regressor(raw["memory"], PeakMemory),
        validity=raw["validity"] and _read_validity(raw["validity"]),
        seen=TrainingSupport(**seen),
        scarce=tuple(map(_read_row, raw["scarce"])),
        scarce_peaks=tuple(map(_read_row, raw["scarce_peaks"])),
        own_peaks=OwnPeaks(**{k: frozenset(v) for k, v in raw.get("own_peaks", {}).items()}),
    )


def _read_row(raw: dict[str, Any]) -> Measurement:
    return Measurement(**{**raw, "config": Config(**raw["config"])})


def _read_regressor(raw: dict[str, Any], physics: type[AnalyticModel]) -> Regressor:
    found = Regressor(physics)
    found.physics_ = physics()
    found.physics_.weights_, found.apart_ = raw["weights"], raw["apart"]
    found.forest_ = Forest()
    found.forest_.columns_, found.forest_.trees_ = raw["columns"], raw["trees"]
    found.widths_ = Widths(**raw["widths"])
    found.unseen_widths_, found.believed_, found.runs_ = raw["unseen_widths"], raw["believed"], raw["runs"]
    return found


def _read_validity(raw: dict[str, Any]) -> Validity:
    calibration = ProbabilityMap()
    calibration.raw_, calibration.calibrated_ = raw["raw"], raw["calibrated"]
    ensemble = Ensemble(estimators.classifiers)
    ensemble.columns_, ensemble.members_ = raw["columns"], raw["members"]
    return Validity(ensemble, calibration)
