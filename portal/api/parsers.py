"""Reading JSON strictly: what two readers might understand differently is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

MAX_DEPTH = 32
MAX_DIGITS = 4000  # Python converts up to 4,300


class TooLarge(APIException):
    status_code = 413
    default_code = "too_large"
    default_detail = "The request is too large."


class StrictJSONParser(BaseParser):
    """JSON without duplicate keys, NaN, infinities, lone surrogates, NULs or deep nesting."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Raises TooLarge (413) beyond MAX_JSON_BYTES and ParseError (400) for what is not strict JSON."""
        limit = settings.MAX_JSON_BYTES
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.")
        try:
            value = json.loads(
                raw.decode("utf-8"),
                object_pairs_hook=_object,
                parse_constant=_no_constant,
                parse_float=_finite,
                parse_int=_whole,
            )
            check_texts(value)
        except UnicodeDecodeError as foreign:
            raise ParseError("The body is not text in UTF-8.") from foreign
        except RecursionError as deep:
            raise ParseError("The JSON is nested too deeply.") from deep
        except ValueError as wrong:  # broken JSON, not UTF-8, numbers of thousands of digits, and the hooks
            raise ParseError(f"The body is not valid JSON: {wrong}") from wrong
        return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:50]!r} appears twice")
    return table


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"the number {digits[:20]}… has more than {MAX_DIGITS} digits")
    return int(digits)


def check_texts(value: Any, depth: int = 0) -> None:
    """Raises ValueError for texts no database stores everywhere, and beyond MAX_DEPTH levels."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        if "\x00" in value:
            raise ValueError("a text contains a NUL character")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as half:
            raise ValueError("a text contains half a surrogate pair, which is not a character") from half
    elif isinstance(value, dict):
        for name, inner in value.items():
            check_texts(name, depth + 1)
            check_texts(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            check_texts(inner, depth + 1)
