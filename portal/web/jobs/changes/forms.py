"""The forms that change or hold a job."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms

from portal.accounts.models import User
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import WholeNumberField
from portal.web.common.param_fields import PREFIX, as_form_values, param_fields
from portal.web.common.term_fields import FIELDS, offer_classes, term_fields, values_of
from portal.web.common.time_fields import TimedForm
from scheduler.core.job_terms import CHANGEABLE, Change
from scheduler.models import Job
from scheduler.selectors.quotas import highest_class
from scheduler.services.jobs.change import CLOSENESS, WAITING
from scheduler.states import PriorityClass
from trainer.recipes import PARAMS, RECIPES, Binds

TERMS = {name: term for name, term in CHANGEABLE.items() if term.kind in FIELDS}
LATE = {name for name, term in TERMS.items() if term.change is Change.WHILE_IT_WAITS}


class HoldForm(StyledForm):
    prefix_id = "hold"
    note = forms.CharField(max_length=200, required=False, help_text="Why; its owner reads it.")


class FrontForm(HoldForm):
    prefix_id = "front"


class ChangeForm(TimedForm):
    """A field that is left out, or is sent as it was shown, stays as it is."""

    prefix_id = "change"
    renamed: ClassVar = {f"params.{name}": f"{PREFIX}{name}" for name in PARAMS}

    version = WholeNumberField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, job: Job, user: User) -> None:
        own = {**values_of(job, TERMS), **as_form_values(job.fixed), "version": job.version}
        super().__init__(data, initial=own)
        highest = max(highest_class(user), PriorityClass(job.priority))
        classes: forms.TypedChoiceField = self.fields["priority"]  # type: ignore[assignment]
        offer_classes(classes, lambda: highest)
        self._keep_only_open(job)

    def table_fields(self) -> dict[str, forms.Field]:
        return {**term_fields(change=True), **param_fields()}

    def _keep_only_open(self, job: Job) -> None:
        """Leave out of an empty form what cannot be changed any more."""
        if self.is_bound:
            return
        closed = {PREFIX + name for name in RECIPES[job.recipe].binding(Binds.SUBMIT)} if job.fence else set()
        if job.state not in WAITING:
            closed = {*LATE, *(name for name in self.fields if name.startswith(PREFIX))}
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
        if sent.keys() & CLOSENESS:  # they go together
            sent |= {name: self.cleaned_data[name] for name in CLOSENESS if name in self.data}
        params = {name.removeprefix(PREFIX): sent.pop(name) for name in list(sent) if name.startswith(PREFIX)}
        kept = {name: value for name, value in sent.items() if name in TERMS and _is_one(name, value)}
        if "version" in sent:
            kept["version"] = sent["version"]
        if params:
            kept["params"] = {name: None if value == "" else value for name, value in params.items()}
        return kept


def _is_one(name: str, value: Any) -> bool:
    """Is it a value, or none where there may be none?"""
    return value != "" and (value is not None or TERMS[name].is_nullable)
