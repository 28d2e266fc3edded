"""The fields of how close a job's GPUs shall lie."""

from __future__ import annotations

from django import forms

from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import Topology
from scheduler.models import Job
from scheduler.services.jobs.terms.closeness import Closely

CLOSE = "GPUs close together"
WAYS = {
    "": "automatic",
    Topology.NONE.value: "not needed",
    Topology.BEST_EFFORT.value: "if possible",
    Topology.GUARANTEED.value: "required",
}
LEVELS = [(level.value, f"one {level.phrase}") for level in sorted(TopologyLevel, reverse=True)]


def asked_of(job: Job) -> str:
    """The way that a job asks for, as the field has it."""
    return "" if job.topology == Topology.AUTOMATIC else job.topology


class ClosenessFields(forms.Form):
    """A way and, where one is asked for, a level."""

    topology = forms.ChoiceField(
        choices=list(WAYS.items()),
        required=False,
        label=CLOSE,
        help_text="Automatic: as close as is predicted to make the job faster, where that is possible.",
    )
    topology_level = forms.TypedChoiceField(
        choices=[("", "no level"), *LEVELS],
        required=False,
        coerce=int,
        empty_value=None,
        label="How close",
        help_text="What they share; only with “if possible” or “required”.",
    )

    @property
    def closeness(self) -> Closely:
        """The chosen closeness, as the services take it."""
        way = self.cleaned_data.get("topology") or Topology.AUTOMATIC
        return Closely(way, self.cleaned_data.get("topology_level"))
