"""Fields of numbers in forms, by the one rule for all of them."""

from __future__ import annotations

import math
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from trainer.written import DECIMAL, WHOLE, is_plain_decimal, is_plain_whole


class WholeNumberField(forms.IntegerField):  # noqa: TID251  # the rule itself
    """A whole number in ASCII digits."""

    default_error_messages = {"invalid": WHOLE}

    def to_python(self, value: Any) -> int | None:
        if isinstance(value, str) and not value.strip():
            return None
        if isinstance(value, str) and not is_plain_whole(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


class NumberField(forms.FloatField):  # noqa: TID251  # the rule itself
    """A number in ASCII digits."""

    default_error_messages = {"invalid": DECIMAL}

    def to_python(self, value: Any) -> float | None:  # type: ignore[override]  # as the stubs of Django
        if isinstance(value, str) and not value.strip():
            return None
        if isinstance(value, str) and not is_plain_decimal(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        number = super().to_python(value)
        if number is not None and math.isinf(number):
            raise ValidationError("Enter a smaller number.", code="max_value")
        return number


class NumberList(forms.CharField):
    """Numbers with commas between them."""

    def to_python(self, value: Any) -> Any:
        words = [word for word in map(str.strip, str(value or "").split(",")) if word]
        if not all(map(is_plain_decimal, words)):
            raise ValidationError(f"{DECIMAL} Put commas between several.")
        return [float(word) for word in words]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(f"{number:g}" for number in value) if isinstance(value, list) else value
