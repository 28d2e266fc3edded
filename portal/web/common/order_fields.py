"""The fields of what a job comes after: other jobs, and whole arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.choices import CallableChoiceIterator
from django.utils.functional import cached_property

from portal.accounts.models import User
from scheduler.core.job_terms import JOB_TERMS
from scheduler.models import Job, JobArray
from scheduler.selectors.jobs import open_arrays, visible_arrays, visible_jobs
from scheduler.services.jobs.dependencies import After
from scheduler.states import TERMINAL, DependencyKind

KINDS = {
    "": "succeed",
    DependencyKind.ENDED.value: "end in whatever way",
}
SHOWN_JOBS, SHOWN_ARRAYS = 50, 20
Choices = list[tuple[str, Any]]


class EarlierField(forms.MultipleChoiceField):
    """Ids of jobs and arrays, which cleaning turns into these.

    They stay in the order in which they were named. Every visible one may be named, also one that is not
    among those offered.
    """

    user: User

    def valid_value(self, value: str) -> bool:
        return True

    def clean(self, value: Any) -> list[Job | JobArray]:
        ids = [str(one).replace("\x00", "") for one in super().clean(value)]
        found = self._rows(ids)
        for one in ids:
            if one not in found:
                kind = "array" if one.startswith(JobArray.PREFIX) else "job"
                raise ValidationError(f"{one} is not the id of one of your {kind}s.")
        return [found[one] for one in dict.fromkeys(ids)]

    def _rows(self, ids: Iterable[str]) -> dict[str, Job | JobArray]:
        wanted = list(ids)
        if not wanted:
            return {}
        jobs = visible_jobs(self.user).only("id", "name", "state").in_bulk(wanted)
        return {**jobs, **visible_arrays(self.user, wanted)}


class OrderFields(forms.Form):
    """Jobs and arrays, and what must have become of all of them."""

    user: User

    after = EarlierField(
        required=False,
        label=JOB_TERMS["after"].label,
        help_text=JOB_TERMS["after"].hint,
    )
    after_kind = forms.ChoiceField(
        choices=list(KINDS.items()),
        required=False,
        label="Provided that they",
        help_text="If one of them cannot succeed any more, the job is cancelled.",
    )

    def offer_order(self, user: User) -> None:
        """Let the person name what they see; what is offered is read when it is shown."""
        field: EarlierField = self.fields["after"]  # type: ignore[assignment]
        field.user = user
        field.widget.choices = CallableChoiceIterator(lambda: self.offered_jobs)

    @cached_property
    def offered_jobs(self) -> Choices:
        """The newest jobs and arrays that have not ended."""
        shown = visible_jobs(self.user).only("id", "name").exclude(state__in=TERMINAL)[:SHOWN_JOBS]
        jobs: Choices = [(job.pk, f"{job.name} …{job.pk[-6:]}" if job.name else job.pk) for job in shown]
        if not jobs:
            return []
        arrays = open_arrays(self.user, SHOWN_ARRAYS)
        if not arrays:
            return jobs
        whole: Choices = [(one.id, _whole(one.id, one.jobs, one.name)) for one in arrays]
        return [("Whole arrays", whole), ("Jobs", jobs)]

    @property
    def order(self) -> list[After]:
        """The jobs and arrays that must end before this job."""
        kind = DependencyKind(self.cleaned_data["after_kind"] or DependencyKind.SUCCEEDED)
        return [After(one, kind) for one in self.cleaned_data["after"]]


def _whole(array: str, jobs: int, first: str) -> str:
    name = first.removesuffix(" 1")
    return f"all {jobs} jobs of {name} …{array[-6:]}" if name else f"all {jobs} jobs of {array}"
