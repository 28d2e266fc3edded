"""The form of a simulation."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms

from portal.web.common.number_fields import NumberField, WholeNumberField
from portal.web.common.time_fields import MomentField, TimedForm
from scheduler.core.policies import LIVE, POLICIES
from scheduler.services.simulations.request import MAX_ERROR, MAX_POLICIES, MAX_SEED, SimulationRequest
from scheduler.simulator.world.predictions import Fidelity

LEVELS = {
    Fidelity.DEFAULT: "nothing: the same duration for every job",
    Fidelity.VALIDITY: "only which configurations run",
    Fidelity.EXACT: "median durations of earlier jobs of the same kind",
    Fidelity.NEIGHBOURS: "the same, else about how long the owner's or the group's last jobs took",
    Fidelity.PERFORMANCE: "the promises made at submission",
    Fidelity.ORACLE: "everything, including actual durations",
}


class SimulationForm(TimedForm):
    prefix_id = "simulation"
    policies = forms.MultipleChoiceField(
        choices=[(name, name) for name in POLICIES],
        help_text=f"Choose up to {MAX_POLICIES}; all are simulated on the same jobs.",
        error_messages={"required": "Choose at least one policy."},
    )
    knowledge = forms.ChoiceField(
        choices=[(level.value, text) for level, text in LEVELS.items()],
        initial=Fidelity.PERFORMANCE,
        label="Known to the policies",
    )
    since = MomentField(required=False, label="Jobs submitted from", help_text="Empty: from the first job.")
    until = MomentField(required=False, label="Until", help_text="Empty: until now.")
    cluster = forms.CharField(
        max_length=500, required=False,
        help_text="GPU:nodes x GPUs per node @price, e.g. a100:8x8,l40s:4x4@1.1, with GPU"
        " models that nodes here have or had. Where GPUs sit:"
        " a100:8x8/numa=4 (also socket, pcie, nvlink). Empty: the nodes of that time.",
    )  # fmt: skip
    error = NumberField(
        min_value=0, max_value=MAX_ERROR, initial=0, required=False, label="Prediction error",
        help_text="Used where no promise was recorded; 0.2 is a median error of 20 %.",
    )  # fmt: skip
    seed = WholeNumberField(min_value=0, max_value=MAX_SEED, initial=0, required=False)
    key = forms.CharField(widget=forms.HiddenInput, max_length=100, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["key"].initial = uuid.uuid4().hex

    @property
    def groups(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Policies under their headings, each with what it does and whether it is chosen."""
        chosen = set(self["policies"].value() or ())
        kinds = {
            "Available in this portal": [name for name in POLICIES if name in LIVE],
            "Only in the simulator": [name for name in POLICIES if name not in LIVE],
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
