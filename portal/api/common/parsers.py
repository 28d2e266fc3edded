"""Bodies of the API: strict JSON within a size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from portal.api.common.wrong_json import odd_field, syntax_problem
from trainer import strict_json


class WrongJson(ParseError):
    """A body that is no strict JSON, and where one is wrong, the field's path."""

    def __init__(self, detail: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.fields = dict(fields or {})


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

        Raises TooLarge (413) beyond MAX_JSON_BYTES and WrongJson (400) for anything but strict
        JSON.
        """
        limit = settings.MAX_JSON_BYTES
        raw = stream.read(limit + 1)
        if len(raw) > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.")
        try:
            value = strict_json.loads(raw)
            strict_json.check_texts(value)
        except strict_json.Excess as wrong:  # not worth a second reading
            raise WrongJson(f"The body {wrong}.") from wrong
        except strict_json.RefusedJson as wrong:
            raise _refusal(raw, wrong) from wrong
        except json.JSONDecodeError as wrong:
            raise WrongJson(syntax_problem(raw, wrong)) from wrong
        return value


def _refusal(raw: bytes, wrong: strict_json.RefusedJson) -> WrongJson:
    odd = odd_field(raw)
    if odd is None:
        return WrongJson(f"The body {wrong}.")
    path, problem = odd
    return WrongJson(f"{path}: {problem}", {path: problem}) if path else WrongJson(f"The body {problem}.")
