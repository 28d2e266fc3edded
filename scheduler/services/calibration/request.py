"""Asking for a calibration of a node, and calling it off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F

from knowledge.core.domain.catalogue import UnknownModel
from knowledge.core.domain.types import Config
from knowledge.recommendations.recommender import RecommendationFailed
from portal.accounts.models import User
from portal.accounts.services import audit
from scheduler import hints
from scheduler.errors import BadParameters, Conflict, IllegalTransition
from scheduler.models import Calibration, Node
from scheduler.services.calibration import plan
from scheduler.services.idempotency import Creation, unkeyed
from scheduler.states import CalibrationState, NodeState

MAX_BUDGET_S = 24 * 3600.0
MAX_RUNS, USUAL_RUNS = 500, 60
MAX_MODELS = 20
UNFINISHED = "A calibration of this node is still going on; wait for its end or cancel it."


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRequest:
    """The time, the models and the largest number of runs of a calibration.

    models: none for those that suit the GPU.
    """

    budget_s: float = 1200.0
    models: Sequence[str] = ()
    runs: int = USUAL_RUNS


def request_calibration(
    *,
    node: Node,
    wanted: CalibrationRequest,
    actor: User,
    now: datetime,
    creation: Creation = unkeyed,
) -> Calibration:
    """Plan the runs and let workers submit them one by one, in the actor's name.

    The calibration is stored in the transaction that `creation` opens. Raises BadParameters
    naming every wrong field, and Conflict if the node is not ready or its last calibration has
    not ended.
    """
    _check(wanted)
    _refuse_busy(node)
    configs = _planned(node, wanted)
    longest = max(config.tokens_per_sample for config in configs)
    file = plan.training_file(owner=actor, longest=longest, now=now)
    values = {
        "node": node, "requested_by": actor, "requested_at": now, "file": file,
        "until": now + timedelta(seconds=wanted.budget_s), "wanted_models": list(wanted.models),
        "plan": [asdict(config) for config in configs],
    }  # fmt: skip
    with creation() as note:
        try:
            with transaction.atomic():
                made = Calibration.objects.create(**values)
        except IntegrityError as twin:
            raise Conflict(UNFINISHED) from twin
        terms = {"budget_s": wanted.budget_s, "models": ", ".join(wanted.models), "runs": len(configs)}
        audit(
            action="calibration requested", actor=actor, node=node.name, target=made.pk, data=terms, now=now
        )
        note(made)
        hints.calibrate()
    return made


@transaction.atomic
def cancel_calibration(*, calibration: Calibration, actor: User, now: datetime) -> Calibration:
    """Submit no further run and cancel those that have not ended.

    Cancelling twice changes nothing. Measurements made so far count. Raises IllegalTransition
    when it had ended or was ending of itself.
    """
    running = Calibration.objects.filter(pk=calibration.pk, state=CalibrationState.RUNNING)
    reason = f"Cancelled by {actor.get_username()}."
    changed = running.update(
        state=CalibrationState.STOPPING, outcome=CalibrationState.CANCELLED, reason=reason, turn=F("turn") + 1
    )
    calibration.refresh_from_db()
    if changed:
        audit(action="calibration cancelled", actor=actor, target=calibration.pk, now=now)
        hints.calibrate()
    elif calibration.outcome != CalibrationState.CANCELLED:
        state = calibration.state
        raise IllegalTransition(f"The calibration is {state}; there is nothing to cancel.", state)
    return calibration


def _check(wanted: CalibrationRequest) -> None:
    errors = {}
    if not 0 < wanted.budget_s <= MAX_BUDGET_S:
        errors["budget_s"] = f"must be above 0 and at most {MAX_BUDGET_S:,.0f} seconds"
    if not 1 <= wanted.runs <= MAX_RUNS:
        errors["runs"] = f"must be between 1 and {MAX_RUNS}"
    if len(wanted.models) > MAX_MODELS:
        errors["models"] = f"name at most {MAX_MODELS} models"
    if errors:
        raise BadParameters(errors)


def _refuse_busy(node: Node) -> None:
    if node.state != NodeState.READY:
        raise Conflict(f"The node is {node.state}; only a ready node can be calibrated.")
    if Calibration.objects.filter(node=node, ended_at__isnull=True).exists():
        raise Conflict(UNFINISHED)


def _planned(node: Node, wanted: CalibrationRequest) -> list[Config]:
    try:
        configs = plan.plan(
            node=node, models=wanted.models, count=wanted.runs, budget_s=wanted.budget_s
        )  # fmt: skip
    except (UnknownModel, plan.CannotCalibrate) as cannot:
        raise BadParameters({"models": str(cannot)}) from cannot
    except RecommendationFailed as failed:
        raise Conflict("The runs cannot be planned now; the log says why. Try again later.") from failed
    if not configs:
        remedy = "no run of these models fits this node in that time; allow more time or a smaller model"
        raise BadParameters({"budget_s": remedy})
    return configs
