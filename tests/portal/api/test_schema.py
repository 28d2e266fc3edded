"""The API's description of itself."""

from __future__ import annotations

from pathlib import Path

from django.core.management import call_command


def test_the_openapi_schema_is_complete_and_without_warnings(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))
