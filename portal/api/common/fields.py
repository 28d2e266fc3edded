"""Strict serializer fields and serializers.

The fields take exactly one JSON type, and the serializers know all their fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from django.conf import settings
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from trainer.strict_json import is_number, is_whole
from trainer.written import clean_name, composed, is_plain_whole, strange_names

MOST_NAMED = 20  # wrong fields in one answer


def unknown_names(data: Iterable[Any], known: Collection[str]) -> dict[str, list[str]]:
    """What is wrong with names that are not known, by name; the first few of them."""
    others = (str(name)[:50] for name in data if name not in known)
    told = strange_names(islice(others, MOST_NAMED), known, "is not known here")
    return {name: [text] for name, text in told.items()}


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that names unknown fields instead of ignoring them.

    A typing error must not be silent.
    """

    default_error_messages = {"invalid": "must be a JSON object"}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = [name for name, field in self.fields.items() if not field.read_only]
            if unknown := unknown_names(data, known):
                raise ValidationError({**self._also_wrong(data), **unknown})
        return super().to_internal_value(data)

    def _also_wrong(self, data: Any) -> dict[str, Any]:
        """The errors of the known fields, so that one answer names all that is wrong."""
        try:
            super().to_internal_value(data)
        except ValidationError as refused:
            return dict(refused.detail) if isinstance(refused.detail, dict) else {}
        return {}


class StrictText(serializers.CharField):
    """A JSON text; numbers are not turned into one."""

    def __init__(self, **kwargs: Any) -> None:
        if not kwargs.get("allow_blank"):
            kwargs.setdefault("min_length", 1)  # blank is refused anyway; this puts it into the schema
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise ValidationError("must be a text")
        return super().to_internal_value(data)


class Name(StrictText):
    """A name as people read it, by the one rule for all of them."""

    def to_internal_value(self, data: Any) -> str:
        try:
            return clean_name(super().to_internal_value(data))
        except ValueError as wrong:
            raise ValidationError(str(wrong)) from wrong


class SearchText(serializers.CharField):
    """A text of an address to search for, in the form in which names are kept."""

    def to_internal_value(self, data: Any) -> str:
        return composed(super().to_internal_value(data))


class ChoiceField(serializers.ChoiceField):
    """One of a few texts; a refusal names them all."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        super().__init__(choices, **kwargs)
        self.error_messages["invalid_choice"] = f"must be one of {', '.join(map(str, self.choices))}"


class Word(serializers.ChoiceField):
    """A word of an answer, of a closed set.

    words: an enumeration, or a list. allow_blank: it is empty where nothing is to be said.
    """

    def __init__(self, words: Iterable[str], **kwargs: Any) -> None:
        choices = getattr(words, "choices", None) or [str(word) for word in words]
        super().__init__(choices, read_only=True, **kwargs)


class Email(serializers.EmailField):
    """A JSON text that is a mail address."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise ValidationError("must be a text")
        return super().to_internal_value(data)


class ZonedDateTime(serializers.DateTimeField):
    """A moment in ISO 8601 with its offset from UTC.

    A clock's time alone means another moment elsewhere.
    """

    def to_internal_value(self, value: Any) -> datetime:
        if isinstance(value, str) and not value.isascii():
            raise ValidationError("must be written in ASCII, e.g. 2026-12-01T08:00:00+01:00")
        return super().to_internal_value(value)

    def enforce_timezone(self, value: datetime) -> datetime:
        if timezone.is_naive(value):
            raise ValidationError("needs a time zone: end it with Z for UTC, or with an offset as in +02:00")
        return super().enforce_timezone(value)


class WholeNumber(serializers.IntegerField):
    """A JSON whole number: neither "3", nor true, nor 3.0."""

    def to_internal_value(self, data: Any) -> int:
        if not is_whole(data):
            raise ValidationError("must be a whole number")
        return super().to_internal_value(data)


class WrittenNumber(serializers.IntegerField):
    """A whole number of an address or of a multipart form, in ASCII digits."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, str) and not is_plain_whole(data):
            raise ValidationError("must be a whole number in the digits 0 to 9")
        return super().to_internal_value(data)


class Number(serializers.FloatField):
    """A JSON number; the parser has refused those that are not finite."""

    def to_internal_value(self, data: Any) -> float:
        if not is_number(data):
            raise ValidationError("must be a number")
        try:
            return super().to_internal_value(data)
        except OverflowError as large:
            raise ValidationError("is too large") from large


class StrictBoolean(serializers.BooleanField):
    """A JSON truth value: neither "yes" nor 1."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise ValidationError("must be true or false")
        return data


class CurrencyField(serializers.CharField):
    """The unit of every amount in the answer, the same in all of them."""

    def __init__(self) -> None:
        help_text = "Of all amounts and prices; empty where the portal names none."
        super().__init__(source="*", read_only=True, help_text=help_text)

    def to_representation(self, value: Any) -> str:
        return str(settings.CURRENCY)
