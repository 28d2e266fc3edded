"""The forms that change or hold a job."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms

from portal.accounts.models import User
from portal.web.common.closeness_fields import ClosenessFields, asked_of
from portal.web.common.currency import BudgetField
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import WholeNumberField
from portal.web.common.param_fields import PREFIX, as_form_values, param_fields
from portal.web.common.time_fields import HoursField, MomentField, TimedForm
from portal.web.jobs.forms import CLASS, GOALS, SPOT_NODES, STOPPED, STOPPING, TIME_LIMIT
from scheduler.models import Job
from scheduler.selectors.quotas import highest_class
from scheduler.services.jobs.change import WAITING, WHILE_IT_WAITS
from scheduler.services.quotas import MOST_RUN_S
from scheduler.states import PriorityClass
from trainer.recipes import RECIPES, Binds


class HoldForm(StyledForm):
    prefix_id = "hold"
    note = forms.CharField(max_length=200, required=False, help_text="Why; its owner reads it.")


class FrontForm(HoldForm):
    prefix_id = "front"


class ChangeForm(ClosenessFields, TimedForm):
    """A field that is left out, or is sent as it was shown, stays as it is."""

    prefix_id = "change"
    renamed: ClassVar = {f"params.{name}": f"{PREFIX}{name}" for name in RECIPES["sft"].params}

    version = WholeNumberField(required=False, widget=forms.HiddenInput)
    priority = forms.TypedChoiceField(
        coerce=int, required=False, label=CLASS, help_text="Higher ones go first."
    )
    preemptible = forms.TypedChoiceField(
        choices=list(STOPPING.items()), required=False, coerce=lambda text: text != "0", empty_value=None,
        label=STOPPED,
    )  # fmt: skip
    max_run_s = HoursField(
        most_s=MOST_RUN_S, required=False, label=TIME_LIMIT, help_text="Empty: as your jobs may."
    )
    goal = forms.ChoiceField(choices=[(goal.value, text) for goal, text in GOALS.items()], required=False)
    deadline_at = MomentField(required=False, label="Deadline")
    budget = BudgetField(required=False)
    spot = forms.TypedChoiceField(
        choices=[("yes", "yes"), ("no", "no")], required=False, coerce=lambda text: text == "yes",
        empty_value=None, label=SPOT_NODES, help_text="They are cheaper and can be withdrawn.",
    )  # fmt: skip

    def __init__(self, data: Any = None, *, job: Job, user: User) -> None:
        super().__init__(data, initial=_values(job))
        highest = max(highest_class(user), job.priority)
        classes: forms.TypedChoiceField = self.fields["priority"]  # type: ignore[assignment]
        classes.choices = [(one.value, one.word) for one in PriorityClass if one <= highest]
        self._keep_only_open(job)

    def computed_fields(self) -> dict[str, forms.Field]:
        return {**super().computed_fields(), **param_fields()}

    def _keep_only_open(self, job: Job) -> None:
        """Leave out of an empty form what cannot be changed any more."""
        if self.is_bound:
            return
        closed = {PREFIX + name for name in RECIPES[job.recipe].binding(Binds.SUBMIT)} if job.fence else set()
        if job.state not in WAITING:
            closed = {*WHILE_IT_WAITS, *(name for name in self.fields if name.startswith(PREFIX))}
        for name in closed & self.fields.keys():
            del self.fields[name]

    @property
    def param_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name.startswith(PREFIX)]

    @property
    def other_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if not field.name.startswith(PREFIX)]

    @property
    def values(self) -> dict[str, Any]:
        """The changes as the service takes them."""
        sent = {name: self.cleaned_data[name] for name in self.changed_data if name in self.data}
        close = sent.keys() & {"topology", "topology_level"}
        params = {name.removeprefix(PREFIX): sent.pop(name) for name in list(sent) if name.startswith(PREFIX)}
        kept = {name: value for name, value in sent.items() if name in KEPT and value != ""}
        if "preemptible" in kept:
            kept["preemptible"] = kept["preemptible"] is not False
        if close:
            kept["closeness"] = self.closeness
        if params:
            kept["params"] = {name: None if value == "" else value for name, value in params.items()}
        return kept


KEPT = ("version", "priority", "preemptible", "max_run_s", "goal", "deadline_at", "budget", "spot")


def _values(job: Job) -> dict[str, Any]:
    """The job's values as the fields take them."""
    return {
        "priority": job.priority,
        "preemptible": "" if job.preemptible else "0",
        "max_run_s": job.max_run_s,
        "topology": asked_of(job),
        "topology_level": job.topology_level,
        "goal": job.goal,
        "deadline_at": job.deadline_at,
        "budget": job.budget,
        "spot": "yes" if job.spot else "no",
        "version": job.version,
        **as_form_values(job.fixed),
    }
