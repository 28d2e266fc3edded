"""The form of a new job: two required values; everything else may stay empty and is recommended."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms

from knowledge.core.types import Goal
from portal.accounts.models import User
from portal.web.templatetags.portal_format import words
from scheduler.models import DatasetFile
from scheduler.selectors.files import visible_files
from trainer.recipes import RECIPES, Param

PREFIX = "params-"
GOALS = {
    Goal.BALANCED: "Balanced: time and cost alike",
    Goal.FASTEST: "Fastest",
    Goal.CHEAPEST: "Cheapest",
}


def _field_of(name: str, param: Param) -> forms.Field:
    common: dict[str, Any] = {"required": False, "help_text": param.help, "label": words(name)}
    if param.kind is bool:
        choices = [("", "recommended"), ("true", "yes"), ("false", "no")]
        return forms.TypedChoiceField(
            choices=choices, coerce=lambda text: text == "true", empty_value=None, **common
        )
    if param.choices:
        return forms.ChoiceField(choices=[("", "recommended"), *((c, c) for c in param.choices)], **common)
    if param.kind is str:
        return forms.CharField(max_length=100, **common)
    kind = forms.IntegerField if param.kind is int else forms.FloatField
    low, high = (None if b is None else param.kind(b) for b in (param.low, param.high))
    return kind(min_value=low, max_value=high, **common)


class SubmitForm(forms.Form):
    model = forms.CharField(max_length=300, label="Base model")
    training_file = forms.ModelChoiceField(
        DatasetFile.objects.none(),
        required=False,
        empty_label="choose an earlier file",
        label="Training data",
    )
    upload = forms.FileField(required=False, label="or upload a JSONL file")
    goal = forms.ChoiceField(
        choices=[(goal.value, text) for goal, text in GOALS.items()], initial=Goal.BALANCED, required=False
    )
    name = forms.CharField(max_length=200, required=False)
    # Sent back with the form: a double click, a reload or the back button gives the same job again.
    key = forms.CharField(max_length=64, widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        files: forms.ModelChoiceField[DatasetFile] = self.fields["training_file"]  # type: ignore[assignment]
        files.queryset = visible_files(user)
        self.fields["key"].initial = uuid.uuid4().hex
        for name, param in RECIPES["sft"].params.items():
            self.fields[PREFIX + name] = _field_of(name, param)
        self._style()

    def _style(self) -> None:
        for name, field in self.fields.items():
            chosen = isinstance(field.widget, forms.Select)
            field.widget.attrs.setdefault("class", "form-select" if chosen else "form-control")
            if field.help_text:
                field.widget.attrs["aria-describedby"] = f"id_{name}_help"
            if name in self.errors if self.is_bound else False:
                field.widget.attrs["class"] += " is-invalid"
                field.widget.attrs["aria-invalid"] = "true"

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if "training_file" not in self.errors and not (values.get("training_file") or values.get("upload")):
            self.add_error("training_file", "Choose a file or upload one.")
        return values

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

    def take(self, errors: dict[str, str]) -> None:
        """Show a service's errors at the fields they name."""
        for name, message in errors.items():
            field = PREFIX + name.removeprefix("params.") if name.startswith("params.") else name
            self.add_error(field if field in self.fields else None, message)
