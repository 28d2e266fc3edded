"""The form of a new job: two required values; everything else may stay empty and is recommended."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.utils.functional import cached_property

from knowledge.core.domain.types import Goal
from knowledge.core.recommend.objectives import needed_limit
from portal.accounts.models import Team, User
from portal.web.common.form_base import StyledForm
from portal.web.common.param_fields import PREFIX, param_fields
from scheduler.models import DatasetFile
from scheduler.selectors.files import Storage, storage_of, visible_files
from scheduler.services.jobs.objectives import DEADLINE
from scheduler.services.jobs.verbs import MAX_RETRIES
from trainer.recipes import RECIPES

GOALS = {
    Goal.BALANCED: "Balanced: time and cost alike",
    Goal.FASTEST: "Fastest",
    Goal.CHEAPEST: "Cheapest",
    Goal.DEADLINE: "Cheapest by a deadline",
    Goal.BUDGET: "Fastest within a budget",
}
# The field that takes an upload, and the one that then shows the stored file.
UPLOADS = {"upload": "training_file", "validation_upload": "validation_file"}
MORE = ("validation_file", "validation_upload", "team", "deadline_at", "budget", "retries")
SHOWN_FILES = 50


class UploadField(forms.FileField):
    """A file of training data; `max_bytes` lets the page refuse a larger one before it is sent."""

    @property
    def max_bytes(self) -> int:
        return int(settings.MAX_UPLOAD_BYTES)


def _files(label: str, nothing: str) -> forms.ModelChoiceField[DatasetFile]:
    return forms.ModelChoiceField(
        DatasetFile.objects.none(), required=False, empty_label=nothing, label=label
    )


class SubmitForm(StyledForm):
    renamed: ClassVar = {f"params.{name}": f"{PREFIX}{name}" for name in RECIPES["sft"].params}

    model = forms.CharField(
        max_length=300,
        label="Base model",
        widget=forms.TextInput(attrs={"list": "models", "placeholder": "e.g. builtin/tiny-llama"}),
    )
    training_file = _files("Training data", "choose an earlier file")
    upload = UploadField(required=False, label="or upload a JSONL file")
    goal = forms.ChoiceField(
        choices=[(goal.value, text) for goal, text in GOALS.items()], initial=Goal.BALANCED, required=False
    )
    name = forms.CharField(max_length=200, required=False, help_text="To find the job again; may stay empty.")
    validation_file = _files("Validation data", "none")
    validation_upload = UploadField(required=False, label="or upload a JSONL file")
    team = forms.ModelChoiceField(
        Team.objects.none(),
        required=False,
        empty_label="only me",
        help_text="Its members see the job, and it is charged.",
    )
    deadline_at = forms.DateTimeField(
        required=False,
        label="Deadline",
        help_text=f"In the time of {settings.TIME_ZONE}.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    budget = forms.FloatField(
        required=False, min_value=0, max_value=1e12, help_text="In the currency of the nodes' prices."
    )
    retries = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_RETRIES,
        help_text="After an error of data or code; 0 is usual.",
    )
    # Sent back with the form: a double click, a reload or the back button gives the same job again.
    key = forms.CharField(max_length=64, widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.fields["key"].initial = uuid.uuid4().hex
        self.fields["params-gpu_model"].widget.attrs["list"] = "gpu-models"
        self._offer_files()
        teams: forms.ModelChoiceField[Team] = self.fields["team"]  # type: ignore[assignment]
        teams.queryset = user.teams.all()

    def computed_fields(self) -> dict[str, forms.Field]:
        return param_fields()

    def _offer_files(self) -> None:
        """Show the newest files; every visible one may be chosen."""
        visible = visible_files(self.user)
        shown = visible.defer("lengths")
        newest = {file.pk: f"{file.filename} ({file.rows:,} rows)" for file in shown[:SHOWN_FILES]}
        for name in UPLOADS.values():
            field: forms.ModelChoiceField[DatasetFile] = self.fields[name]  # type: ignore[assignment]
            field.queryset = visible
            chosen = self[name].value() or ""
            if not isinstance(chosen, DatasetFile):
                pk = str(chosen).replace("\x00", "")
                chosen = shown.filter(pk=pk).first() if pk and pk not in newest else None
            offered = newest if chosen is None or chosen.pk in newest else {chosen.pk: str(chosen), **newest}
            field.widget.choices = [("", field.empty_label), *offered.items()]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if "training_file" not in self.errors and not (values.get("training_file") or values.get("upload")):
            self.add_error("training_file", "Choose a file or upload one.")
        return values

    @cached_property
    def storage(self) -> Storage:
        return storage_of(self.user)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that were filled in, by their own names."""
        given = {
            name.removeprefix(PREFIX): value
            for name, value in self.cleaned_data.items()
            if name.startswith(PREFIX)
        }
        return {name: value for name, value in given.items() if value not in (None, "")}

    @property
    def param_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith(PREFIX)]

    @property
    def needed(self) -> str | None:
        """The field that the chosen goal cannot do without."""
        return needed_limit(self["goal"].value(), deadline=DEADLINE)

    def is_used(self, *names: str) -> bool:
        """Does one of the fields hold something, or complain?"""
        return any(self[name].value() or (self.is_bound and name in self.errors) for name in names)

    def renew_key(self) -> None:
        """Sending the form again is then another submission."""
        self.data = {**self.data.dict(), "key": uuid.uuid4().hex}  # type: ignore[attr-defined]
