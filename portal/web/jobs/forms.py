"""The form of a new job.

Two values are required; everything else may stay empty and is recommended.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.utils.functional import cached_property

from knowledge.core.domain.types import Goal
from knowledge.core.recommend.objectives import needed_limit, why_needed
from portal.accounts.models import Team, User
from portal.accounts.selectors import own_teams
from portal.web.common.order_fields import OrderFields
from portal.web.common.param_fields import PREFIX, param_fields
from portal.web.common.read_fields import ReadFields
from portal.web.common.sweep_fields import SweepFields
from portal.web.common.term_fields import FIELDS, offer_classes, term_fields
from portal.web.common.time_fields import TimedForm
from scheduler.core.job_terms import JOB_TERMS, Kind
from scheduler.models import DatasetFile
from scheduler.selectors.files import Storage, file_labels, storage_of, visible_files
from scheduler.selectors.quotas import highest_class
from scheduler.services.jobs.objectives import DEADLINE
from trainer.recipes import DEFAULT_RECIPE, PARAMS

# The field that takes an upload, and the one that then shows the stored file.
UPLOADS = {"upload": "training_file", "validation_upload": "validation_file"}
FOLDED = [
    name
    for name, term in JOB_TERMS.items()
    if term.folded and term.is_open and term.kind in {*FIELDS, Kind.TEAM}
]
MORE = ("validation_file", "validation_upload", "after", *FOLDED, "sweep", "sweep_values", "sweep_limit")
NEEDED_FOR = {needed_limit(goal, deadline=DEADLINE): goal.value for goal in Goal}
SHOWN_FILES = 50


class UploadField(forms.FileField):
    """A file of training data.

    `max_bytes` lets the page refuse a larger one before it is sent.
    """

    @property
    def max_bytes(self) -> int:
        return int(settings.MAX_UPLOAD_BYTES)


def _file(name: str, nothing: str) -> forms.ModelChoiceField[DatasetFile]:
    return forms.ModelChoiceField(
        DatasetFile.objects.none(), required=False, empty_label=nothing, label=JOB_TERMS[name].label
    )


class SubmitForm(OrderFields, ReadFields, SweepFields, TimedForm):
    renamed: ClassVar = {f"params.{name}": f"{PREFIX}{name}" for name in PARAMS}

    model = forms.CharField(
        max_length=300,
        label=JOB_TERMS["model"].label,
        help_text=JOB_TERMS["model"].hint,
        widget=forms.TextInput(attrs={"list": "models", "placeholder": "e.g. builtin/tiny-llama"}),
    )
    training_file = _file("training_file", "choose an uploaded file")
    upload = UploadField(required=False, label="or upload a JSONL or JSON file")
    validation_file = _file("validation_file", "none")
    validation_upload = UploadField(required=False, label="or upload a JSONL or JSON file")
    team = forms.ModelChoiceField(
        Team.objects.none(), required=False, empty_label="no team", help_text=JOB_TERMS["team"].hint
    )
    # Sent back with the form: a double click, a reload or the back button gives the same job again.
    key = forms.CharField(max_length=64, widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.fields["key"].initial = uuid.uuid4().hex
        self.fields["params-gpu_model"].widget.attrs["list"] = "gpu-models"
        self._offer_files()
        self.offer_order(user)
        teams: forms.ModelChoiceField[Team] = self.fields["team"]  # type: ignore[assignment]
        teams.queryset = own_teams(user)
        classes: forms.TypedChoiceField = self.fields["priority"]  # type: ignore[assignment]
        offer_classes(classes, cache(lambda: highest_class(user)))

    def show_origins(self, origins: dict[str, str]) -> None:
        """Say below the fields where their first values come from."""
        for name, origin in origins.items():
            field = self.fields[name]
            field.help_text = self[name].help_text = f"{origin} {field.help_text}"

    def take(self, errors: Mapping[str, str]) -> None:
        super().take(self.of_values(errors))

    def table_fields(self) -> dict[str, forms.Field]:
        return {**term_fields(), **param_fields()}

    def _offer_files(self) -> None:
        """Show the newest files; every visible one may be chosen."""
        visible = visible_files(self.user)
        shown = visible.defer("lengths").select_related("owner", "team")
        newest = file_labels(shown[:SHOWN_FILES], self.user)
        for name in UPLOADS.values():
            field: forms.ModelChoiceField[DatasetFile] = self.fields[name]  # type: ignore[assignment]
            field.queryset = visible
            chosen = self[name].value() or ""
            if not isinstance(chosen, DatasetFile):
                pk = str(chosen).replace("\x00", "")
                chosen = shown.filter(pk=pk).first() if pk and pk not in newest else None
            older = chosen is not None and chosen.pk not in newest
            offered = {**file_labels([chosen], self.user), **newest} if chosen and older else newest
            field.widget.choices = [("", field.empty_label), *offered.items()]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if "training_file" not in self.errors and not (values.get("training_file") or values.get("upload")):
            self.add_error("training_file", "Choose a file or upload one.")
        needed = self.needed
        if needed and needed not in self.errors and values.get(needed) is None:
            self.add_error(needed, why_needed(values["goal"]))
        return values

    @cached_property
    def storage(self) -> Storage:
        return storage_of(self.user)

    @property
    def terms(self) -> dict[str, Any]:
        """The terms that were filled in, as the services take them, without sent files."""
        given = {name: self.cleaned_data.get(name) for name in JOB_TERMS}
        filled = {name: value for name, value in given.items() if value not in (None, "")}
        return {**filled, "params": self.params, "after": self.order}

    @property
    def recipe(self) -> str:
        return self.cleaned_data.get("recipe") or DEFAULT_RECIPE.name

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
    def folded(self) -> list[tuple[forms.BoundField, str]]:
        """The terms under *More*, each with the goal that needs it, if any."""
        return [(self[name], NEEDED_FOR.get(name, "")) for name in FOLDED]

    @property
    def needed(self) -> str | None:
        """The field that the chosen goal cannot do without."""
        return needed_limit(self["goal"].value(), deadline=DEADLINE)

    @property
    def refused(self) -> dict[str, list[str]]:
        """Return the errors to show, by the ids of their fields on the page.

        They are those of fields that hold something or that the goal needs.
        """
        wrong = {name: errors for name, errors in self.errors.items() if name in self.fields}
        return {
            self[name].auto_id: [str(error) for error in errors]
            for name, errors in wrong.items()
            if name == self.needed or self[name].value()
        }

    def is_used(self, *names: str) -> bool:
        """Does one of the fields hold something, or complain?"""
        return any(self[name].value() or (self.is_bound and name in self.errors) for name in names)

    def renew_key(self) -> None:
        """Sending the form again is then another submission."""
        self.data = {**self.data.dict(), "key": uuid.uuid4().hex}  # type: ignore[attr-defined]
