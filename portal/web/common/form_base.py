"""Small forms that look alike and say what is wrong at the field it is about."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from trainer.written import clean_name, composed

log = logging.getLogger(__name__)


class NameField(forms.CharField):
    """A name as people read it, by the one rule for all of them."""

    def to_python(self, value: Any) -> str:
        try:
            return clean_name(super().to_python(value) or "")
        except ValueError as wrong:
            message = str(wrong)
            raise ValidationError(f"{message[0].upper()}{message[1:]}.") from wrong


class SearchField(forms.CharField):
    """A text to search for, in the form in which names are kept."""

    def to_python(self, value: Any) -> str:
        return composed(super().to_python(value) or "")


class StyledForm(forms.Form):
    """A form with Bootstrap's classes.

    The templates give help texts and errors the ids that Django ties to fields. `prefix_id` keeps
    ids apart; `renamed` has the fields that a service calls by another name, under its names.
    """

    prefix_id = "id"
    renamed: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.auto_id = f"{self.prefix_id}_%s"
        self.fields.update(self.table_fields())
        self.fields.update(self.computed_fields())
        for field in self.fields.values():
            kind = {"select": "form-select", "checkbox": "form-check-input"}.get(
                getattr(field.widget, "input_type", ""), "form-control"
            )
            field.widget.attrs.setdefault("class", kind)
        if self.is_bound:
            self._note_unknown()

    def table_fields(self) -> dict[str, forms.Field]:
        """Fields that follow from a table, by name."""
        return {}

    def computed_fields(self) -> dict[str, forms.Field]:
        """Fields that follow from the others, by name."""
        return {}

    def take(self, errors: Mapping[str, str]) -> None:
        """Show what a service refuses at its field, or above all where it is about none."""
        for name, message in errors.items():
            field = self.renamed.get(name, name)
            self.add_error(field if field in self.fields else None, message)

    def _note_unknown(self) -> None:
        """Log fields that the form does not have: they change nothing, but somebody tried."""
        if extra := sorted(set(self.data) - set(self.fields) - {"csrfmiddlewaretoken"}):
            log.warning("unknown form fields ignored: %s", ", ".join(extra)[:200])

    @property
    def checkboxes(self) -> set[str]:
        return {name for name, field in self.fields.items() if isinstance(field, forms.BooleanField)}


class FilterForm(StyledForm):
    """Filters of a list, from its address.

    The address carries other things too (`page`, `after`).
    """

    prefix_id = "filter"

    def _note_unknown(self) -> None:
        pass

    @property
    def shown(self) -> list[forms.BoundField]:
        """The fields that people fill in."""
        return self.visible_fields()
