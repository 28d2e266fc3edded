"""Checked values of a row's fields.

Each function raises ValueError with a sentence that names the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer import strict_json


def text(raw: Mapping[str, Any], field: str, path: str = "") -> str:
    """A text that says something."""
    value = any_text(raw, field, path)
    if not value.strip():
        raise ValueError(f"{path}{field} is empty")
    return value


def any_text(raw: Mapping[str, Any], field: str, path: str = "") -> str:
    """A text that may be blank."""
    value = raw.get(field)
    if value is None:
        raise ValueError(f"{path}{field} is missing")
    if not isinstance(value, str):
        raise ValueError(f"{path}{field} must be a text")
    return _clean(value, path + field)


def optional_text(raw: Mapping[str, Any], field: str, path: str = "") -> str:
    """A text, or an empty one where there is none or a blank one."""
    value = raw.get(field)
    return "" if value is None or is_blank(value) else text(raw, field, path)


def objects(value: Any, path: str) -> list[dict[str, Any]]:
    """A list of JSON objects, or the JSON text of one; none for None."""
    value = from_json(value, path) if isinstance(value, str) and value.strip() else value
    if value is None or is_blank(value):
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ValueError(f"{path} must be a list of objects")
    return value


def from_json(value: str, path: str) -> Any:
    """The value of a text that must be JSON: some tools keep objects as texts."""
    try:
        return strict_json.loads(value)
    except ValueError:
        raise ValueError(f"{path} must be JSON") from None


def clean_json(value: Any, path: str) -> None:
    """Refuse what no text of a model may hold, in any text of a JSON value."""
    try:
        strict_json.check_texts(value)
    except strict_json.RefusedJson as wrong:
        raise ValueError(f"{path} {wrong}") from None


def is_empty(value: Any) -> bool:
    """Does a field say nothing? False and 0 do say something."""
    return value is None or value in ([], {}) or is_blank(value)


def is_blank(value: Any) -> bool:
    """Is it a text of nothing but white space?"""
    return isinstance(value, str) and not value.strip()


def _clean(value: str, path: str) -> str:
    if "\x00" in value:
        raise ValueError(f"{path} holds the character NUL; remove it")
    if not value.isascii() and strict_json.UNSTORABLE.search(value):
        raise ValueError(f"{path} holds half a surrogate pair, which is not a character")
    return value
