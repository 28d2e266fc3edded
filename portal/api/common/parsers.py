"""Bodies of the API: strict JSON within a size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from trainer import strict_json


class TooLarge(APIException):
    status_code = 413
    default_code = "too_large"
    default_detail = "The request is too large."


class StrictJSONParser(BaseParser):
    """Strict JSON, without NULs and lone surrogates."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Parse the body as strict JSON.

        Raises TooLarge (413) beyond MAX_JSON_BYTES and ParseError (400) for anything but strict
        JSON.
        """
        limit = settings.MAX_JSON_BYTES
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.")
        try:
            value = strict_json.loads(raw)
            strict_json.check_texts(value)
        except strict_json.RefusedJson as wrong:
            raise ParseError(f"The body {wrong}.") from wrong
        except ValueError as wrong:
            raise ParseError(f"The body is not valid JSON: {wrong}") from wrong
        return value
