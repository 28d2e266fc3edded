"""The panel of a node's calibrations.

It shows the running ones, the results, and the form for another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from django import forms

from portal.clock import database_now
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import WholeNumberField
from scheduler.models import Calibration, Node
from scheduler.selectors.cluster.calibrations import calibrations, measured
from scheduler.services.calibration.request import MAX_BUDGET_S, USUAL_RUNS, CalibrationRequest
from scheduler.states import CalibrationState
from trainer.protocol import RANDOM_MODEL

SHOWN = 3


class CalibrationForm(StyledForm):
    prefix_id = "calibration"
    renamed: ClassVar[Mapping[str, str]] = {"budget_s": "minutes", "models": "model"}
    minutes = WholeNumberField(
        min_value=1, max_value=int(MAX_BUDGET_S / 60), initial=20, label="Time limit in minutes"
    )
    model = forms.CharField(
        max_length=300,
        required=False,
        help_text=f"Empty: several models that suit the GPU. {RANDOM_MODEL}NAME trains an architecture of the"
        " catalogue with random weights; nothing is downloaded.",
    )

    @property
    def wanted(self) -> CalibrationRequest:
        model = self.cleaned_data["model"]
        return CalibrationRequest(
            budget_s=60.0 * self.cleaned_data["minutes"], models=[model] if model else ()
        )


def calibration_panel(node: Node, form: CalibrationForm | None = None) -> dict[str, Any]:
    """The panel's context; `form`: the one that was refused."""
    found = list(calibrations(node)[:SHOWN])
    now = database_now()
    latest = found[0] if found else None
    going_on = latest is not None and latest.ended_at is None
    return {
        "calibrations": found,
        "going_on": latest if going_on else None,
        **(_progress(latest, now) if latest else {}),
        "left_s": max(0.0, (latest.until - now).total_seconds()) if latest else None,
        "can_cancel": latest is not None and latest.state == CalibrationState.RUNNING,
        "measured": list(measured(latest)[:USUAL_RUNS]) if latest else [],
        "calibration_form": form or CalibrationForm(),
    }


def _progress(calibration: Calibration, now: datetime) -> dict[str, int]:
    """How far it is: by runs or by time, whichever ends it first, and by time alone."""
    of_runs = float(calibration.ended) / max(1, len(calibration.plan))  # type: ignore[attr-defined]
    of_time = (now - calibration.requested_at) / (calibration.until - calibration.requested_at)
    percent, time_percent = (round(100 * min(1.0, share)) for share in (max(of_runs, of_time), of_time))
    return {"percent": percent, "time_percent": time_percent}
