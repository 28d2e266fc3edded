"""The API's description of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from portal.configuration.api_description import WORDS
from trainer.recipes import PARAMS

METHODS = ("get", "post", "put", "patch", "delete")


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


def test_the_description_is_valid_and_each_operation_says_what_it_is() -> None:
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    schema = json.loads(json.dumps(schema, default=str))
    validate(schema)
    assert schema["openapi"].startswith("3.1.")
    assert [server["url"] for server in schema["servers"]] == ["/"]
    operations = [
        operation for path in schema["paths"].values() for name, operation in path.items() if name in METHODS
    ]
    assert len(operations) > 100
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        name = operation["operationId"]
        assert operation.get("summary"), name
        assert operation.get("description"), name
        assert operation.get("tags"), name
        assert any(status.startswith("4") for status in operation["responses"]), name
        for content in operation.get("requestBody", {}).get("content", {}).values():
            allowed = OAS31Validator({**content["schema"], "components": schema["components"]})
            assert [error.message for error in allowed.iter_errors(content["example"])] == [], name


def test_generators_of_clients_meet_nothing_that_they_cannot_take() -> None:
    """No default with parts, no object with a part of its own name, no union that may be left out."""
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    parts = schema["components"]["schemas"]
    for name, part in parts.items():
        for field, value in part.get("properties", {}).items():
            assert field.replace("_", "").lower() != name.lower(), name
            assert not ({"$ref", "allOf"} & value.keys() and isinstance(value.get("default"), dict)), name
    bodies = [
        (operation["operationId"], operation["requestBody"].get("required"), content["schema"])
        for operations in schema["paths"].values()
        for operation in operations.values()
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    unions = {name: needed for name, needed, body in bodies if "oneOf" in parts[body["$ref"][21:]]}
    assert unions == {"jobs_create": True}


def test_the_openapi_schema_is_complete_and_without_warnings(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "schema.yml"))


def test_parameters_stand_in_the_schema_with_their_bounds_and_words_are_enumerations() -> None:
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    parts = schema["components"]["schemas"]
    known = parts["Params"]["properties"]
    assert known.keys() == PARAMS.keys()
    assert known["tokens_per_sample"] | {"description": ""} == {
        "type": ["integer", "null"], "minimum": 16, "maximum": 131_072, "x-unit": "tokens", "description": ""
    }  # fmt: skip
    assert "PrecisionEnum" in json.dumps(known["precision"])
    assert parts["PrecisionEnum"]["enum"] == ["bfloat16", "float16", "float32"]
    assert "Params" in json.dumps(parts["JobInRequest"]["properties"]["params"])
    for name in ("goal", "recipe", "topology", "state", "stage", "priority"):
        assert "num" in json.dumps(parts["JobOut"]["properties"][name]), name
    assert WORDS.keys() <= parts.keys()
