"""Small forms that look alike and say what is wrong at the field it is about."""

from __future__ import annotations

from typing import Any

from django import forms


class StyledForm(forms.Form):
    """Bootstrap's classes, help texts and errors tied to their fields. `prefix_id` keeps ids apart."""

    prefix_id = "id"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.auto_id = f"{self.prefix_id}_%s"
        for name, field in self.fields.items():
            kind = {"select": "form-select", "checkbox": "form-check-input"}.get(
                getattr(field.widget, "input_type", ""), "form-control"
            )
            field.widget.attrs.setdefault("class", kind)
            if field.help_text:
                field.widget.attrs["aria-describedby"] = f"{self.prefix_id}_{name}_help"
            if self.is_bound and name in self.errors:
                field.widget.attrs["class"] += " is-invalid"
                field.widget.attrs["aria-invalid"] = "true"

    @property
    def checkboxes(self) -> set[str]:
        return {name for name, field in self.fields.items() if isinstance(field, forms.BooleanField)}
