"""Filters of lists, as strict as the fields of bodies."""

from __future__ import annotations

from typing import Any

from django import forms
from django_filters import rest_framework as filters

from trainer.written import composed


class TextField(forms.CharField):
    """A text to search for, in the form in which names are kept."""

    def to_python(self, value: Any) -> str:
        return composed(super().to_python(value) or "")


class TextFilter(filters.CharFilter):
    """A text of an address to search for."""

    field_class = TextField


class DigestField(TextField):
    def to_python(self, value: Any) -> str:
        return super().to_python(value).lower()


class DigestFilter(filters.CharFilter):
    """A SHA-256, in the form in which digests are kept."""

    field_class = DigestField


class WordFilter(filters.ChoiceFilter):
    """One of a few words; a refusal names them all."""

    def __init__(self, words: Any, **kwargs: Any) -> None:
        message = f"must be one of {', '.join(words)}"
        choices = [(word, word) for word in words]
        super().__init__(choices=choices, error_messages={"invalid_choice": message}, **kwargs)
