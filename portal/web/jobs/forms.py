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
from portal.web.common.closeness_fields import ClosenessFields
from portal.web.common.currency import BudgetField
from portal.web.common.form_base import NameField
from portal.web.common.number_fields import WholeNumberField
from portal.web.common.order_fields import OrderFields
from portal.web.common.param_fields import PREFIX, param_fields
from portal.web.common.read_fields import ReadFields
from portal.web.common.sweep_fields import SweepFields
from portal.web.common.time_fields import HoursField, MomentField, TimedForm
from scheduler.models import DatasetFile
from scheduler.selectors.files import Storage, file_labels, storage_of, visible_files
from scheduler.selectors.quotas import highest_class
from scheduler.services.jobs.objectives import DEADLINE
from scheduler.services.jobs.verbs import MAX_RETRIES
from scheduler.services.quotas import MOST_RUN_S
from scheduler.states import PriorityClass
from trainer.recipes import RECIPES

GOALS = {
    Goal.BALANCED: "Balanced between time and cost",
    Goal.FASTEST: "Fastest",
    Goal.CHEAPEST: "Cheapest",
    Goal.DEADLINE: "Cheapest that meets a deadline",
    Goal.BUDGET: "Fastest within a budget",
}
# The field that takes an upload, and the one that then shows the stored file.
UPLOADS = {"upload": "training_file", "validation_upload": "validation_file"}
STOPS = ("priority", "preemptible", "max_run_s", "spot", "topology", "topology_level")
LIMITS = (
    "deadline_at",
    "budget",
    "retries",
    "begin_at",
    "after",
    "sweep",
    "sweep_values",
    "sweep_limit",
    *STOPS,
)
MORE = ("validation_file", "validation_upload", "team", *LIMITS)
STOPPING = {"": "may be stopped", "0": "is never stopped"}
SPOT = {"": "yes, if there is a deadline", "yes": "yes", "no": "no"}
CLASS, STOPPED, TIME_LIMIT = "Priority class", "For jobs that go first", "Time limit, hours"
SPOT_NODES = "May use spot nodes"
SHOWN_FILES = 50


class UploadField(forms.FileField):
    """A file of training data.

    `max_bytes` lets the page refuse a larger one before it is sent.
    """

    @property
    def max_bytes(self) -> int:
        return int(settings.MAX_UPLOAD_BYTES)


def _files(label: str, nothing: str) -> forms.ModelChoiceField[DatasetFile]:
    return forms.ModelChoiceField(
        DatasetFile.objects.none(), required=False, empty_label=nothing, label=label
    )


class SubmitForm(OrderFields, ClosenessFields, ReadFields, SweepFields, TimedForm):
    renamed: ClassVar = {f"params.{name}": f"{PREFIX}{name}" for name in RECIPES["sft"].params}

    model = forms.CharField(
        max_length=300,
        label="Base model",
        help_text="One of the list, the id of a model on the Hugging Face Hub, or a folder that the"
        " administrators allow.",
        widget=forms.TextInput(attrs={"list": "models", "placeholder": "e.g. builtin/tiny-llama"}),
    )
    training_file = _files("Training data", "choose an uploaded file")
    upload = UploadField(required=False, label="or upload a JSONL or JSON file")
    goal = forms.ChoiceField(
        choices=[(goal.value, text) for goal, text in GOALS.items()], initial=Goal.BALANCED, required=False
    )
    name = NameField(max_length=200, required=False, help_text="Optional; makes the job easy to find.")
    validation_file = _files("Validation data", "none")
    validation_upload = UploadField(required=False, label="or upload a JSONL or JSON file")
    team = forms.ModelChoiceField(
        Team.objects.none(),
        required=False,
        empty_label="no team",
        help_text="Its members see the job, and the cost counts towards the team.",
    )
    deadline_at = MomentField(required=False, label="Deadline")
    budget = BudgetField(required=False)
    begin_at = MomentField(
        required=False, label="Not before", help_text="The job does not start before this time."
    )
    retries = WholeNumberField(
        required=False,
        min_value=0,
        max_value=MAX_RETRIES,
        help_text="How often to retry after an error in data or code; 0 is usual.",
    )
    priority = forms.TypedChoiceField(
        required=False,
        coerce=int,
        label=CLASS,
        help_text="Higher ones go first.",
    )
    preemptible = forms.TypedChoiceField(
        choices=list(STOPPING.items()),
        required=False,
        coerce=lambda text: text != "0",
        label=STOPPED,
        help_text="A job that is never stopped uses no GPUs that are guaranteed to other teams.",
    )
    max_run_s = HoursField(
        most_s=MOST_RUN_S,
        required=False,
        label=TIME_LIMIT,
        help_text="Of running; the job is then saved and ends as failed. Empty: what your jobs may.",
    )
    spot = forms.TypedChoiceField(
        choices=list(SPOT.items()),
        required=False,
        coerce=lambda text: text == "yes",
        empty_value=None,
        label=SPOT_NODES,
        help_text="They are cheaper and can be withdrawn; the job then goes on elsewhere, from its last"
        " checkpoint.",
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
        self._offer_classes()

    def show_origins(self, origins: dict[str, str]) -> None:
        """Say below the fields where their first values come from."""
        for name, origin in origins.items():
            field = self.fields[name]
            field.help_text = self[name].help_text = f"{origin} {field.help_text}"

    def take(self, errors: Mapping[str, str]) -> None:
        super().take(self.of_values(errors))

    def computed_fields(self) -> dict[str, forms.Field]:
        return {**super().computed_fields(), **param_fields()}

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

    def _offer_classes(self) -> None:
        """The classes that the person may give; they are read when they are shown."""

        @cache
        def offered() -> list[tuple[str, str]]:
            highest = highest_class(self.user)
            others = [(str(one.value), one.word) for one in PriorityClass if one <= highest and one]
            return [("", PriorityClass.NORMAL.word), *others]

        classes: forms.TypedChoiceField = self.fields["priority"]  # type: ignore[assignment]
        classes.choices = offered

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
