"""Which jobs a list shows: filters that live in its address."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.web.common.form_base import SearchField
from scheduler.models import Job
from scheduler.models.ids import is_id_like, new_job_id
from scheduler.selectors.public_states import PUBLIC_STATES, in_public_state

HIDDEN = ("state", "after")


class JobFilters(forms.Form):
    q = SearchField(required=False, max_length=200, label="Name, id or array")
    model = SearchField(required=False, max_length=300, label="Base model")
    owner = SearchField(required=False, max_length=150, label="Submitted by")
    state = forms.ChoiceField(required=False, choices=[("", "all"), *((s, s) for s in PUBLIC_STATES)])
    after = forms.CharField(required=False, max_length=40)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not user.is_admin:
            del self.fields["owner"]
        for name, field in self.fields.items():
            field.widget.attrs.update({"class": "form-control form-control-sm", "id": f"filter_{name}"})

    def clean_after(self) -> str:
        """The row may be gone; what is no id of a job would show the newest again."""
        after: str = self.cleaned_data["after"]
        if after and not is_id_like(after, new_job_id()):
            raise forms.ValidationError("This is not the id of a job.")
        return after

    @property
    def shown(self) -> list[forms.BoundField]:
        """The fields that people type into."""
        return [self[name] for name in self.fields if name not in HIDDEN]

    @property
    def other_errors(self) -> list[str]:
        """Errors of values that nobody typed: the address was edited or is broken."""
        return [f"{name}: {text}" for name in HIDDEN for text in self.errors.get(name, [])]

    @property
    def in_use(self) -> bool:
        return any(self.cleaned_data.get(name) for name in self.fields)

    def apply(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """The jobs that pass, newest first. Only for a valid form."""
        chosen = self.cleaned_data
        if chosen["state"]:
            jobs = in_public_state(jobs, chosen["state"])
        if text := chosen["q"]:
            jobs = jobs.filter(Q(name__icontains=text) | Q(pk__icontains=text) | Q(array=text))
        if chosen["model"]:
            jobs = jobs.filter(model__icontains=chosen["model"])
        if owner := chosen.get("owner"):
            jobs = jobs.filter(owner__username__icontains=owner)
        if chosen["after"]:
            jobs = jobs.filter(pk__lt=chosen["after"])
        return jobs.order_by("-pk")
