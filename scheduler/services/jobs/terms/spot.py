"""May a job use spot nodes?

Only if its checkpoints are kept where no withdrawal reaches them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.held_weights import checkpoint_bytes
from knowledge.core.domain.catalogue import UnknownGpu, UnknownModel
from knowledge.core.domain.option_json import read_option
from scheduler.errors import BadParameters

GIB = 2**30


class SpotTerms(NamedTuple):
    """Whether a job may use spot nodes, and what its owner is told of it."""

    spot: bool
    notes: tuple[str, ...] = ()


def spot_terms(
    *, requested: bool | None, deadline_at: datetime | None, promise: Mapping[str, Any] | None, model: str
) -> SpotTerms:
    """Return the terms of a job that asks so, or leaves it open (None).

    Raises BadParameters where spot nodes are asked for and a checkpoint is larger than what goes to the
    portal: a withdrawal would cost all of the work.
    """
    if not (deadline_at is not None if requested is None else requested):
        return SpotTerms(False)
    size = _checkpoint_bytes(promise, model)
    if size is None or size <= settings.CHECKPOINT_UPLOAD_BYTES:
        return SpotTerms(True)
    why = (
        f"One checkpoint takes about {size / GIB:.1f} GiB, and those above"
        f" {settings.CHECKPOINT_UPLOAD_BYTES / GIB:.1f} GiB stay on their node: a withdrawal would cost all"
        " of the work. Train an adapter instead, or ask an administrator to raise CHECKPOINT_UPLOAD_BYTES."
    )
    if requested:
        raise BadParameters({"spot": why})
    return SpotTerms(False, (f"It uses no spot nodes. {why}",))


def _checkpoint_bytes(promise: Mapping[str, Any] | None, model: str) -> float | None:
    """The size of a checkpoint; None where the model or configuration is unknown."""
    if promise is None:
        return None
    try:
        table = columns([read_option(dict(promise)).config], portal_catalogue(model))
    except (UnknownModel, UnknownGpu):
        return None
    return float(checkpoint_bytes(table)[0])
