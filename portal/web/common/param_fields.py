"""Form fields of a recipe's parameters.

An empty one is left to the recommendation.
"""

from __future__ import annotations

from typing import Any

from django import forms

from portal.web.common.number_fields import NumberField, WholeNumberField
from portal.web.templatetags.portal_format import words
from trainer.recipes import PARAMS, Param

PREFIX = "params-"


def param_fields() -> dict[str, forms.Field]:
    """One field for each parameter of any recipe, by its prefixed name."""
    return {PREFIX + name: _field_of(name, param) for name, param in PARAMS.items()}


def as_form_values(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as the fields of `param_fields` hold them."""
    return {PREFIX + name: form_value(value) for name, value in params.items()}


def form_value(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


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
    kind = WholeNumberField if param.kind is int else NumberField
    low, high = (None if b is None else param.kind(b) for b in (param.low, param.high))
    return kind(min_value=low, max_value=high, **common)
