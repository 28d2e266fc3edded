"""Calibrations: short real trainings on a node.

They let predictions for its GPU rest on measurements.
"""

from __future__ import annotations

import math

from django.conf import settings
from django.db import models

from scheduler.models.files import DatasetFile
from scheduler.models.ids import new_id
from scheduler.models.jobs import Job
from scheduler.models.nodes import Node
from scheduler.states import CALIBRATION_TRANSITIONS, CalibrationState

STATES = [(state.value, state.value.capitalize()) for state in CalibrationState]
ENDS = [one for one in STATES if not CALIBRATION_TRANSITIONS[CalibrationState(one[0])]]


def new_calibration_id() -> str:
    return new_id("cal-")


class Calibration(models.Model):
    """One calibration.

    `outcome` is the state in which it ends, known from the moment at which it stops. No worker holds it. Any
    process that looks at it does the work that is due; `turn` is the fence of all writes.
    """

    id = models.CharField(primary_key=True, max_length=40, default=new_calibration_id, editable=False)
    node = models.ForeignKey(Node, models.CASCADE, related_name="calibrations")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    requested_at = models.DateTimeField()
    until = models.DateTimeField(help_text="what has not ended by then is cancelled")
    wanted_models = models.JSONField(default=list, help_text="asked for; empty: those that suit the GPU")
    plan = models.JSONField(help_text="configurations, in the order in which they are run")
    file = models.ForeignKey(DatasetFile, models.PROTECT, related_name="+")
    jobs = models.ManyToManyField(Job, related_name="+")
    state = models.CharField(
        max_length=10, choices=STATES, default=CalibrationState.RUNNING, db_default=CalibrationState.RUNNING
    )
    outcome = models.CharField(max_length=10, choices=ENDS, blank=True)
    reason = models.CharField(max_length=500, blank=True, help_text="why it ended")
    ended_at = models.DateTimeField(null=True, blank=True)
    judged_runs = models.PositiveIntegerField(default=0)
    error_before = models.FloatField(null=True, blank=True, help_text="median |ln| of the judged runs' rates")
    error_after = models.FloatField(null=True, blank=True, help_text="with the other runs learnt from")
    turn = models.PositiveIntegerField(default=0)
    tries = models.PositiveIntegerField(default=0, help_text="at computing the errors")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=models.Q(ended_at__isnull=True), name="one_open_calibration_a_node"
            ),
            models.CheckConstraint(
                condition=models.Q(state=CalibrationState.RUNNING, outcome="", ended_at__isnull=True)
                | models.Q(state=CalibrationState.STOPPING, outcome__gt="", ended_at__isnull=True)
                | models.Q(state=models.F("outcome"), outcome__gt="", ended_at__isnull=False),
                name="a_calibration_ends_in_its_outcome",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} of {self.node_id}"

    @property
    def factors(self) -> tuple[float, float] | None:
        """The median factors by which rates were off, before and after.

        None where nothing was judged.
        """
        if self.error_before is None or self.error_after is None:
            return None
        return math.exp(self.error_before), math.exp(self.error_after)
