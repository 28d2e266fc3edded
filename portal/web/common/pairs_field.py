"""The form field of text pairs.

They stand on a line each, or in a JSON object where lines cannot hold them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from scheduler.core.job_terms import JobTerm
from trainer.strict_json import RefusedJson, check_texts, loads


class PairsField(forms.CharField):
    """Lines `key = value`, as a mapping to programs."""

    def __init__(self, term: JobTerm, **options: Any) -> None:
        self.term = term
        super().__init__(max_length=20_000, widget=forms.Textarea(attrs={"rows": 3}), **options)

    def clean(self, value: Any) -> dict[str, str]:
        text = super().clean(value)
        pairs = _of_json(text) if text.startswith("{") else _of_lines(text)
        if wrong := self.term.problem(pairs):
            raise ValidationError(wrong)
        return pairs

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        lines = "\n".join(f"{key} = {text}" for key, text in value.items())
        return lines if _reads_as(lines, value) else json.dumps(value, ensure_ascii=False)


def _reads_as(lines: str, pairs: Mapping[str, str]) -> bool:
    try:
        return not lines.startswith("{") and _of_lines(lines) == pairs
    except ValidationError:
        return False


def _of_lines(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        key, separator, value = (part.strip() for part in line.partition("="))
        if key in pairs:
            raise ValidationError(f"Line {number} names {key} again; name each key once.")
        if separator:
            pairs[key] = value
        elif key:
            raise ValidationError(f"Line {number} needs a = between key and value.")
    return pairs


def _of_json(text: str) -> dict[str, str]:
    try:
        pairs: dict[str, str] = loads(text)
        check_texts(pairs)
    except (ValueError, RefusedJson) as wrong:
        raise ValidationError(f"This is no JSON object: {wrong}. Or write lines: key = value.") from wrong
    return pairs
