"""The form of a simulation."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.conf import settings

from portal.web.common.form_base import StyledForm
from scheduler.core.policies import LIVE, POLICIES
from scheduler.services.simulations.request import MAX_ERROR, MAX_POLICIES, MAX_SEED, SimulationRequest
from scheduler.simulator.world.predictions import Fidelity

LEVELS = {
    Fidelity.DEFAULT: "nothing: one stated duration for all",
    Fidelity.VALIDITY: "what runs at all",
    Fidelity.EXACT: "medians of earlier jobs of the same kind",
    Fidelity.PERFORMANCE: "the promises made at submission",
    Fidelity.ORACLE: "everything, as if known before",
}


def _moment(label: str, help_text: str) -> forms.DateTimeField:
    return forms.DateTimeField(
        required=False,
        label=label,
        help_text=help_text,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )


class SimulationForm(StyledForm):
    prefix_id = "simulation"
    policies = forms.MultipleChoiceField(
        choices=[(name, name) for name in POLICIES],
        help_text=f"Choose up to {MAX_POLICIES}; all of them play the same jobs.",
        error_messages={"required": "Choose at least one policy."},
    )
    knowledge = forms.ChoiceField(
        choices=[(level.value, text) for level, text in LEVELS.items()],
        initial=Fidelity.PERFORMANCE,
        label="What policies know",
    )
    since = _moment("Jobs submitted from", f"In the time of {settings.TIME_ZONE}; empty: from the first on.")
    until = _moment("Until", "Empty: until now.")
    cluster = forms.CharField(
        max_length=500, required=False,
        help_text="type:nodes x GPUs each, e.g. a100:8x8,l40s:4x4@1.1 (price); empty: the present nodes.",
    )  # fmt: skip
    error = forms.FloatField(
        min_value=0, max_value=MAX_ERROR, initial=0, required=False, label="Error of predictions",
        help_text="Where no promise was recorded; 0.2 is 20 % in the median.",
    )  # fmt: skip
    seed = forms.IntegerField(min_value=0, max_value=MAX_SEED, initial=0, required=False)
    key = forms.CharField(widget=forms.HiddenInput, max_length=100, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["key"].initial = uuid.uuid4().hex

    @property
    def groups(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Policies under their headings, each with what it does and whether it is chosen."""
        chosen = set(self["policies"].value() or ())
        kinds = {
            "These can decide here, too": [name for name in POLICIES if name in LIVE],
            "In the simulator only": [name for name in POLICIES if name not in LIVE],
        }
        return [
            (heading, [(name, POLICIES[name].description.summary, name in chosen) for name in names])
            for heading, names in kinds.items()
        ]

    @property
    def conditions(self) -> list[forms.BoundField]:
        """Under which the policies are played."""
        return [field for field in self.visible_fields() if field.name != "policies"]

    @property
    def question(self) -> SimulationRequest:
        values = self.cleaned_data
        return SimulationRequest(
            policies=values["policies"], knowledge=values["knowledge"], error=values["error"] or 0.0,
            seed=values["seed"] or 0, cluster=values["cluster"], since=values["since"], until=values["until"],
        )  # fmt: skip

    @property
    def request_key(self) -> str:
        """The same for a form that is sent twice."""
        return str(self.cleaned_data["key"] or self.fields["key"].initial)
