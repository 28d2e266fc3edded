"""The API's description of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator


def test_files_are_binary_and_requests_are_apart_from_answers() -> None:
    """Generators of clients make a text field of what is a URI."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    uploads = {}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content["schema"].get("$ref", "").rpartition("/")[2]
                if "file" in schema["components"]["schemas"].get(name, {}).get("properties", {}):
                    uploads[path] = schema["components"]["schemas"][name]["properties"]["file"]["format"]
    paths = ("files", "executions/import", "imports", "logs")
    assert uploads == {f"/api/{path}/": "binary" for path in paths}
    answers = json.dumps(
        {name: part for name, part in schema["components"]["schemas"].items() if "Request" not in name}
    )
    assert '"writeOnly"' not in answers
    assert '"format": "uri"' not in json.dumps(schema["components"])


def test_the_openapi_schema_is_complete_and_without_warnings(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))
