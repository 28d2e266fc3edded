"""Which predictor answers, by an administrator's decision: promote and roll back, each audited."""

# Errors: PromotionError <- NoSuchPredictor, CannotPromote

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from knowledge import active, learning
from knowledge.models import PredictorVersion
from portal.accounts.models import User
from portal.accounts.services import audit


class PromotionError(Exception):
    """The predictor that answers was left as it is."""


class NoSuchPredictor(PromotionError):
    """No version has this number."""


class CannotPromote(PromotionError):
    """The version cannot answer now; the message says why."""


@transaction.atomic
def promote_version(*, number: int, actor: User, now: datetime) -> PredictorVersion:
    """Make a version the active one, whatever its measured errors: the administrator decides.

    Raises NoSuchPredictor, or CannotPromote where its file is gone or it is active already.
    """
    version = PredictorVersion.objects.select_for_update().filter(number=number).first()
    if version is None:
        raise NoSuchPredictor(f"There is no predictor {number}.")
    if version.active:
        raise CannotPromote(f"Predictor {number} answers already.")
    _require_usable(version)
    learning.promote(version, now=now)
    audit(action="predictor promoted", actor=actor, target=f"predictor {number}", now=now)
    return version


@transaction.atomic
def roll_back(*, actor: User, now: datetime) -> PredictorVersion:
    """Go back to the version that was promoted before the active one. Raises CannotPromote."""
    before = PredictorVersion.objects.filter(active=True).first()
    version = learning.rollback(now=now)
    if version is None:
        raise CannotPromote("No earlier version was ever promoted; there is nothing to go back to.")
    _require_usable(version)
    data = {"from": before.number if before else None}
    audit(
        action="predictor rolled back", actor=actor, target=f"predictor {version.number}", data=data, now=now
    )
    return version


def _require_usable(version: PredictorVersion) -> None:
    if active.knowledge_of(version) is None:
        raise CannotPromote(
            f"The file of predictor {version.number} is gone or damaged; only the latest"
            f" {learning.KEPT_FILES} versions keep theirs. Choose another version."
        )
