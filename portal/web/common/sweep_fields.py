"""The fields of an array: one parameter, and its value in each job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from portal.web.common.number_fields import WholeNumberField
from portal.web.common.param_fields import PREFIX
from portal.web.templatetags.portal_format import words
from scheduler.services.jobs.arrays import FEWEST, MOST
from trainer.recipes import PARAMS

NAMES = [name for name, param in PARAMS.items() if param.kind is not bool]


class SweepFields(forms.Form):
    """Together with the fields of the parameters themselves, which clean the values."""

    sweep = forms.ChoiceField(
        choices=[("", "one job"), *((name, words(name)) for name in NAMES)],
        required=False,
        label="A job for each",
        help_text="Several jobs that differ in this parameter.",
    )
    sweep_values = forms.CharField(
        max_length=20_000, required=False, label="Of these values", help_text="E.g. 1e-4, 2e-4, 5e-4"
    )
    sweep_limit = WholeNumberField(
        required=False, min_value=1, max_value=MOST, label="At a time", help_text="Empty: any number of them."
    )

    def clean_sweep_values(self) -> list[dict[str, Any]]:
        """The values as parameters of each job; empty for one job."""
        name, text = self.cleaned_data.get("sweep"), self.cleaned_data["sweep_values"]
        if not name:
            if text:
                raise ValidationError("Choose the parameter that these are values of.")
            return []
        given = [value.strip() for value in text.split(",")]
        if not FEWEST <= len(given) <= MOST or not all(given):
            raise ValidationError(f"Give {FEWEST} to {MOST} values, with commas between them.")
        values = [self._cleaned(name, value) for value in given]
        if len(set(values)) < len(values):
            raise ValidationError("Give each value once.")
        return [{name: value} for value in values]

    def clean_sweep_limit(self) -> int | None:
        """How many run at a time; a number for one job is a mistake."""
        limit: int | None = self.cleaned_data["sweep_limit"]
        if limit is not None and not self.cleaned_data.get("sweep") and "sweep" not in self.errors:
            raise ValidationError("Goes with several jobs: choose the parameter in which they differ.")
        return limit

    def of_values(self, errors: Mapping[str, str]) -> dict[str, str]:
        """Put errors of `values` at the field of the values.

        One that is about a single value (`values.2.seed`) begins with it.
        """
        found: dict[str, str] = {}
        for name, message in errors.items():
            about, _, number = name.partition(".")
            if about == "values" and (at := number.partition(".")[0]).isdigit():
                (given,) = self.cleaned_data["sweep_values"][int(at)].values()
                message = f"{given}: {message}"
            found["sweep_values" if about == "values" else name] = message
        return found

    def _cleaned(self, name: str, value: str) -> Any:
        try:
            return self.fields[PREFIX + name].clean(value)
        except ValidationError as wrong:
            raise ValidationError([f"{value}: {message}" for message in wrong.messages]) from wrong
