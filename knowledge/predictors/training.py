"""Training predictors, and promoting them only if they are not worse."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db import IntegrityError, transaction

from knowledge import selectors
from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.data.measurement import OWN, Measurement
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.evaluate import evaluation
from knowledge.core.model.fitted_model import FittedModel
from knowledge.core.predict.predictor import LearnedPredictor
from knowledge.models import Execution, PredictorVersion
from knowledge.predictors import loaded_predictor, predictor_files
from knowledge.predictors.model_registry import KEPT_FILES, promote

log = logging.getLogger(__name__)

NEW_ROWS = 50
AT_LEAST_EVERY = timedelta(days=1)
STRAY_AFTER = timedelta(days=1)  # a file that no version names by then belongs to no training that goes on
YARDSTICK = 12  # one configuration in so many is never learnt: every version is measured against it
SLACK = 1.02  # errors this near count as equal: the yardstick is finite


def is_due(now: datetime) -> bool:
    """Is there enough that is new: 50 rows, or any at all and a day has passed?

    A predictor that cannot be used, after an upgrade say, is replaced at once.
    """
    last = selectors.latest_predictor()
    if last is None or loaded_predictor.knowledge_of(selectors.active_predictor()) is None:
        return selectors.new_rows_since(None) > 0
    new = selectors.new_rows_since(last)
    return new >= NEW_ROWS or (new > 0 and now - last.created_at >= AT_LEAST_EVERY)


def train(*, now: datetime, force: bool = False) -> PredictorVersion | None:
    """Train a predictor on all learnable rows and promote it if it is not worse.

    None if nothing new is due, or if there are too few rows to learn from.
    """
    if not force and not is_due(now):
        return None
    before = selectors.active_predictor()
    executions = list(selectors.learnable())
    unseen = before.last_execution if before else None
    held, known = _split(executions, unseen)
    catalogue = portal_catalogue(*{row.model_name for row in executions})
    knowledge = evaluation.train(known, catalogue)
    if not knowledge:
        return None
    metrics, reason, better = _compare(knowledge, before, held, catalogue)
    if better and unseen is not None:
        knowledge = evaluation.train([row.row for row in executions if not _on_yardstick(row)], catalogue)
    version = _save(knowledge, metrics, executions, now=now, reason=reason)
    if version is not None and better:
        promote(version, now=now)
    return version


def _on_yardstick(row: Execution) -> bool:
    """Imported rows of one configuration in twelve, the same for ever."""
    return row.source != OWN and int(row.config_hash[:8], 16) % YARDSTICK == 0


def _split(rows: Sequence[Execution], seen_up_to: int | None) -> tuple[list[Measurement], list[Measurement]]:
    """Split rows into (held out, to learn from).

    Held out are the yardstick and own rows that the active version never saw.
    """

    def held(row: Execution) -> bool:
        is_new = row.source == OWN and seen_up_to is not None and row.pk > seen_up_to
        return is_new or _on_yardstick(row)

    return [row.row for row in rows if held(row)], [row.row for row in rows if not held(row)]


def _compare(
    knowledge: Mapping[str, FittedModel],
    before: PredictorVersion | None,
    held: Sequence[Measurement],
    catalogue: Catalogue,
) -> tuple[dict[str, Any], str, bool]:
    """Return (metrics, reason, is not worse) against the active version.

    Both versions are compared on the same held-out rows.
    """
    mine = evaluation.metrics(LearnedPredictor(knowledge=knowledge, catalogue=catalogue), held)
    old = loaded_predictor.knowledge_of(before)
    if old is None:
        return dict(mine), "the first one that can be used", True
    theirs = evaluation.metrics(LearnedPredictor(knowledge=old, catalogue=catalogue), held)
    metrics: dict[str, Any] = {**mine, "active": theirs, "active_version": before and before.number}
    worse = [name for name in ("throughput_log_error", "validity_error") if _worse(mine, theirs, name)]
    if worse:
        return metrics, f"not promoted: worse in {' and '.join(worse)} on {len(held)} held-out rows", False
    return metrics, f"not worse on {len(held)} held-out rows", True


def _worse(mine: Mapping[str, float], theirs: Mapping[str, float], name: str) -> bool:
    return name in mine and name in theirs and mine[name] > theirs[name] * SLACK


def _save(
    knowledge: Mapping[str, FittedModel],
    metrics: dict[str, Any],
    executions: Sequence[Execution],
    *,
    now: datetime,
    reason: str,
) -> PredictorVersion | None:
    """The version's file and row; None if another training took the number meanwhile."""
    last = selectors.latest_predictor()
    number = last.number + 1 if last else 1
    # Two trainings at once take the same number, and neither may write over what the other promoted.
    path = loaded_predictor.folder() / f"predictor-{number}-{uuid4().hex[:8]}.skops"
    digest = predictor_files.save(knowledge, path)
    try:
        with transaction.atomic():
            version = PredictorVersion.objects.create(
                number=number,
                path=path.name,
                sha256=digest,
                metrics=metrics,
                rows=len(executions),
                last_execution=max(row.pk for row in executions),
                created_at=now,
                reason=reason,
            )
    except IntegrityError:
        log.warning("another training took the number", extra={"predictor": number})
        path.unlink(missing_ok=True)
        return None
    _forget_old_files(number)
    _forget_strays(now)
    return version


def _forget_old_files(newest: int) -> None:
    """Files of versions long replaced go; their rows stay as a record."""
    old = PredictorVersion.objects.filter(active=False, number__lte=newest - KEPT_FILES)
    before = selectors.rollback_target()
    for version in old.exclude(pk__in=[before.pk] if before else []):
        (loaded_predictor.folder() / version.path).unlink(missing_ok=True)


def _forget_strays(now: datetime) -> None:
    """Remove files of trainings that were killed while they wrote."""
    named = set(PredictorVersion.objects.values_list("path", flat=True))
    for file in loaded_predictor.folder().iterdir():
        if file.name not in named and file.stat().st_mtime < (now - STRAY_AFTER).timestamp():
            file.unlink(missing_ok=True)
