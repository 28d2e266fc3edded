"""Which nodes a list shows: filters that live in its address."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.web.common.form_base import SearchField
from scheduler.selectors.silence import NODE_STATES


class NodeFilters(forms.Form):
    """`gpus`: the GPU models that can be chosen."""

    q = SearchField(required=False, max_length=200, label="Name, host or id")
    gpu = forms.ChoiceField(required=False, label="GPU type")
    state = forms.ChoiceField(
        required=False, choices=[("", "all"), *((state, state) for state in NODE_STATES)]
    )

    def __init__(self, *args: Any, gpus: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.auto_id = "filter_%s"
        choices: forms.ChoiceField = self.fields["gpu"]  # type: ignore[assignment]
        choices.choices = [("", "any"), *((model, model) for model in gpus)]
        choices.widget.attrs["class"] = "form-select form-select-sm"
        self.fields["q"].widget.attrs["class"] = "form-control form-control-sm"

    @property
    def shown(self) -> list[forms.BoundField]:
        """The fields that people fill in; the state is chosen by a link."""
        return [self["q"], self["gpu"]]

    @property
    def other_errors(self) -> list[str]:
        return [f"state: {text}" for text in self.errors.get("state", [])]

    @property
    def in_use(self) -> bool:
        return any(self.cleaned_data.values())
