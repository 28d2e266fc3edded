"""The only code that writes executions: each ended attempt leaves exactly one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.data.measurement import FROM_LOG, OWN, flag_implausible
from knowledge.core.data.sources.table import BadCell, check_batch
from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import Catalogue, UnknownGpu
from knowledge.core.domain.option_json import option_json
from knowledge.core.domain.types import Config, Option
from knowledge.models import Execution, Status, config_values
from portal.accounts.models import User
from portal.accounts.services import audit
from trainer.protocol import RANDOM_MODEL

Figure = TypeVar("Figure", int, float)
LONGEST_SOFTWARE = 200
UNCONFIRMED = "Read from a log; nobody has confirmed its configuration yet."
MOST_UNCONFIRMED = 20  # logs of a person
SPEED_TEST = "speed test"  # the origin of what a node measured by itself


@transaction.atomic
def record_execution(
    *,
    attempt_id: UUID,
    config: Config,
    status: str,
    now: datetime,
    tokens_per_second: float | None = None,
    runtime_s: float | None = None,
    startup_s: float | None = None,
    peak_memory_bytes: int | None = None,
    memory_capacity_bytes: int | None = None,
    learn: bool = True,
    flag_reason: str = "",
    promise: Option | None = None,
    elsewhere: Option | None = None,
    predictor_version: int | None = None,
    software: str | None = None,
    link_level: str | None = None,
) -> Execution:
    """Record how an attempt ended; once recorded, return the existing row.

    `runtime_s` counts only where the training ended by itself. Impossible figures are stored as unknown, a
    rate above the hardware peak is kept but not learnt from. `promise`: the option it ran with; `elsewhere`:
    the one promised at submission, if another. Raises ValueError for an unknown status.
    """
    _check_status(status)
    catalogue = portal_catalogue(config.model_name)
    known = catalogue.canonical(config)
    values = {
        **row_values(known),
        "created_at": now,
        "source": OWN,
        "software": (software or known.software or "")[:LONGEST_SOFTWARE] or None,
        "status": status,
        "tokens_per_second": _above_zero(tokens_per_second),
        "runtime_s": _above_zero(runtime_s) if status == Status.OK else None,
        # Random weights are made and not loaded: their start-up tells nothing about the model's.
        "startup_s": None if config.model_name.startswith(RANDOM_MODEL) else _above_zero(startup_s),
        "peak_memory_bytes": _above_zero(peak_memory_bytes),
        "peak_memory_fraction": _fraction(peak_memory_bytes, memory_capacity_bytes),
        "learn": learn,
        "learn_validity": learn and status in (Status.OK, Status.OOM),
        "flag_reason": flag_reason[:300],
        "predicted": option_json(promise) if promise else None,
        "promised_elsewhere": option_json(elsewhere) if elsewhere else None,
        "predictor_version": predictor_version,
        "padded_tokens": promise.padded_tokens if promise else None,
        "link_level": link_level,
    }
    return Execution.objects.get_or_create(attempt_id=attempt_id, defaults=_doubted(values, catalogue))[0]


def _check_status(status: str) -> None:
    if status not in Status.values:
        raise ValueError(f"status {status!r} is unknown; use one of {', '.join(Status.values)}")


def record_speed_test(
    *,
    config: Config,
    tokens_per_second: float,
    startup_s: float | None,
    peak_memory_bytes: int,
    memory_capacity_bytes: int,
    software: str,
    now: datetime,
) -> Execution:
    """Record what a node measured by itself, while idle, of a configuration of no job.

    All samples had the configuration's full length. It teaches as own runs do.
    """
    catalogue = portal_catalogue(config.model_name)
    values = {
        **row_values(catalogue.canonical(config)),
        "created_at": now,
        "source": OWN,
        "origin": SPEED_TEST,
        "software": software[:LONGEST_SOFTWARE] or None,
        "status": Status.OK,
        "tokens_per_second": tokens_per_second,
        "startup_s": startup_s,
        "peak_memory_bytes": peak_memory_bytes,
        "peak_memory_fraction": _fraction(peak_memory_bytes, memory_capacity_bytes),
        "padded_tokens": float(config.tokens_per_sample),
    }
    return Execution.objects.create(**_doubted(values, catalogue))


@transaction.atomic
def record_log(*, config: Config, tokens_per_second: float, keeper: User, now: datetime) -> Execution:
    """Keep the speed that a log of a run elsewhere tells; once, however often.

    It is not learnt from before somebody confirms the configuration, which the log does not hold. Raises
    BadCell for a GPU that the catalogue does not know, for a batch that no database holds, and while too many
    logs of the person wait for that.
    """
    check_batch(config.effective_batch_size)
    catalogue = portal_catalogue(config.model_name)
    try:
        catalogue.gpu(config.gpu_model)
    except UnknownGpu as unknown:
        raise BadCell("gpu_model", str(unknown)) from None
    known = catalogue.canonical(config)
    values = {
        **row_values(known),
        "created_at": now,
        "source": FROM_LOG,
        "status": Status.OK,
        "tokens_per_second": tokens_per_second,
        "learn": False,
        "learn_validity": False,
        "flag_reason": UNCONFIRMED,
        "kept_by": keeper,
    }
    identity = f"{FROM_LOG} {values['config_hash']} {tokens_per_second:.6g}"
    digest = hashlib.sha256(identity.encode()).hexdigest()
    kept = Execution.objects.filter(row_digest=digest).first()
    if kept is None:
        _check_room(keeper)
        kept = Execution.objects.get_or_create(row_digest=digest, defaults=values)[0]
    return kept


def _check_room(keeper: User) -> None:
    """Refuse a log of somebody whose logs fill the list already."""
    User.objects.select_for_update().get(pk=keeper.pk)  # one after the other
    waiting = Execution.objects.filter(source=FROM_LOG, flag_reason=UNCONFIRMED, kept_by=keeper)
    if waiting.count() >= MOST_UNCONFIRMED:
        raise BadCell(
            "file",
            f"would be log {MOST_UNCONFIRMED + 1} of yours that waits for an administrator's confirmation;"
            " ask for it first",
        )


def confirm_log(*, execution: Execution, now: datetime, actor: User) -> Execution:
    """Learn from a kept log, as its configuration is right.

    Implausible speeds stay unlearnt.
    """
    catalogue = portal_catalogue(execution.model_name)
    (row,) = flag_implausible([replace(execution.row, learn=True, flag_reason="")], catalogue)
    values = {"learn": row.learn, "flag_reason": row.flag_reason[:300]}
    waiting = Execution.objects.filter(pk=execution.pk, source=FROM_LOG, flag_reason=UNCONFIRMED)
    if waiting.update(**values):
        target = f"execution {execution.pk}"
        audit(action="execution confirmed", actor=actor, now=now, target=target, data=values)
    execution.refresh_from_db()
    return execution


def unlearn(*, executions: Collection[int], reason: str) -> None:
    """Keep executions and learn no longer from them."""
    values = {"learn": False, "learn_validity": False, "flag_reason": reason[:300]}
    Execution.objects.filter(pk__in=executions).update(**values)


def _doubted(values: dict[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """The columns, not learnt from where they claim more than the hardware can do."""
    (row,) = flag_implausible([Execution(**values).row], catalogue)
    return {**values, "learn": row.learn, "flag_reason": row.flag_reason[:300]}


def row_values(config: Config) -> dict[str, Any]:
    """The columns that describe a configuration."""
    return {
        **config_values(config),
        "effective_batch_size": config.effective_batch_size,
        "config_hash": config_space.config_hash(config),
    }


def _above_zero(value: Figure | None) -> Figure | None:
    return value if value is not None and 0 < value < math.inf else None


def _fraction(used: int | None, capacity: int | None) -> float | None:
    if not capacity or _above_zero(used) is None:
        return None
    return min(1.0, (used or 0) / capacity)
