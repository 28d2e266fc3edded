"""The choice of the predictor that answers.

A predictor is promoted by training or by an administrator, and can be rolled back. Promotions
are a stack: rolling back undoes the last one, so that doing it twice goes back twice.
"""

# Errors: PromotionError <- NoSuchPredictor, CannotPromote

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from knowledge import selectors
from knowledge.models import PredictorVersion, Promotion
from knowledge.predictors import loaded_predictor
from portal.accounts.models import User
from portal.accounts.services import audit
from portal.events.models import Event
from portal.events.services import record
from portal.events.types import EventType, subject

log = logging.getLogger(__name__)
KEPT_FILES = 5


class PromotionError(Exception):
    """The predictor that answers was left as it is."""


class NoSuchPredictor(PromotionError):
    """No version has this number."""


class CannotPromote(PromotionError):
    """The version cannot answer now; the message says why."""


@transaction.atomic
def promote(version: PredictorVersion, *, now: datetime, by: User | None = None) -> None:
    """Make this version the one that answers; `by` is None where training decided."""
    Promotion.objects.create(version=version, at=now, by=by)
    _activate(version)
    version.promoted_at = now
    version.save(update_fields=["promoted_at"])
    record(
        [
            Event(
                subject=subject("predictor", version.number),
                type=EventType.PREDICTOR_PROMOTED,
                actor=by,
                at=now,
            )
        ]
    )


def _note(version: PredictorVersion, type: EventType, actor: User | None, now: datetime, **data: int) -> None:
    record([Event(subject=subject("predictor", version.number), type=type, data=data, actor=actor, at=now)])


def _activate(version: PredictorVersion) -> None:
    # A promotion at the same time waits here, so that the update below sees what the first one did.
    list(PredictorVersion.objects.select_for_update().order_by("pk").values_list("pk"))
    PredictorVersion.objects.filter(active=True).update(active=False)
    version.active = True
    version.save(update_fields=["active"])
    log.info("predictor answers", extra={"predictor": version.number})


@transaction.atomic
def promote_version(*, number: int, actor: User, now: datetime) -> PredictorVersion:
    """Make a version the active one, whatever its measured errors.

    The administrator decides; one that is active already stays. Raises NoSuchPredictor, or CannotPromote
    where its file is gone.
    """
    version = PredictorVersion.objects.select_for_update().filter(number=number).first()
    if version is None:
        raise NoSuchPredictor(f"There is no predictor {number}.")
    if version.active:
        return version
    _require_usable(version)
    promote(version, now=now, by=actor)
    audit(action="predictor promoted", actor=actor, target=f"predictor {number}", now=now)
    return version


@transaction.atomic
def roll_back(*, actor: User, now: datetime, seen: int | None = None) -> PredictorVersion:
    """Undo the last promotion: the version that answered before it answers again.

    `seen` is the active version that the actor saw, if any was shown: two administrators who roll back at
    once go back once. Raises CannotPromote.
    """
    undone = Promotion.objects.select_for_update().filter(undone_at__isnull=True).order_by("-pk").first()
    version = selectors.rollback_target()
    if undone is None or version is None:
        raise CannotPromote("No earlier version was ever promoted; there is nothing to roll back to.")
    if seen is not None and seen != undone.version.number:
        raise CannotPromote(
            f"Predictor {undone.version.number} answers by now, not {seen}; look again and decide anew."
        )
    _require_usable(version)
    Promotion.objects.filter(pk=undone.pk).update(undone_at=now)
    _activate(version)
    _note(version, EventType.PREDICTOR_ROLLED_BACK, actor, now, undone=undone.version.number)
    data = {"from": undone.version.number}
    audit(
        action="predictor rolled back", actor=actor, target=f"predictor {version.number}", data=data, now=now
    )
    return version


def _require_usable(version: PredictorVersion) -> None:
    if loaded_predictor.knowledge_of(version) is None:
        raise CannotPromote(
            f"The file of predictor {version.number} is gone or damaged; only the latest"
            f" {KEPT_FILES} versions and the one before the active one keep theirs. Choose another version."
        )
