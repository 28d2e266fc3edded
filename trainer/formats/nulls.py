"""Nulls that Arrow inserts.

Files that were written by way of Arrow or Parquet give each object all the fields that any has.
What a model meets when it is used has none of these nulls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainer.formats.unused import Unused

_MEANT = ("default", "const")  # null says something here, if the schema has it as a value


def of_schema(value: Any) -> Any:
    """The JSON schema of a tool without inserted nulls."""
    if isinstance(value, list):
        return [of_schema(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    has_null = _names_null(value)
    return {
        name: of_schema(entry)
        for name, entry in value.items()
        if entry is not None or (has_null and name in _MEANT)
    }


def of_arguments(value: dict[str, Any], schema: Any, unused: Unused, path: str) -> dict[str, Any]:
    """The arguments of a call without nulls that the schema does not allow.

    Their names are noted. Nulls in lists are kept: Arrow inserts none there.
    """
    return _kept(value, schema, schema, unused, path)


def _kept(value: dict[str, Any], schema: Any, root: Any, unused: Unused, path: str) -> dict[str, Any]:
    declared = _properties(schema, root)
    kept: dict[str, Any] = {}
    for name, entry in value.items():
        own = declared.get(name)
        if entry is None and not _allows_null(own, root):
            unused.note([f"{name} (null)"], path)
        else:
            kept[name] = _inner(entry, own, root, unused, f"{path}{name}.")
    return kept


def _inner(value: Any, schema: Any, root: Any, unused: Unused, path: str) -> Any:
    if isinstance(value, list):
        items = next((found for one in _parts(schema, root) if (found := one.get("items"))), None)
        return [_inner(entry, items, root, unused, path) for entry in value]
    return _kept(value, schema, root, unused, path) if isinstance(value, dict) else value


def _properties(schema: Any, root: Any) -> Mapping[str, Any]:
    tables = [one.get("properties") for one in _parts(schema, root)]
    return {name: own for table in tables if isinstance(table, dict) for name, own in table.items()}


def _parts(schema: Any, root: Any, depth: int = 8) -> Iterator[dict[str, Any]]:
    """A schema, what it refers to, and the schemas that it joins."""
    if not isinstance(schema, dict) or not depth:
        return
    yield schema
    joined = [_referred(schema.get("$ref"), root)]
    for name in ("allOf", "anyOf", "oneOf"):
        joined += schema[name] if isinstance(schema.get(name), list) else []
    for part in joined:
        yield from _parts(part, root, depth - 1)


def _referred(address: Any, root: Any) -> Any:
    """The schema at an address such as `#/$defs/place`; None elsewhere."""
    if not isinstance(address, str) or not address.startswith("#/"):
        return None
    for name in address.removeprefix("#/").split("/"):
        root = root.get(name) if isinstance(root, dict) else None
    return root


def _names_null(schema: Mapping[str, Any]) -> bool:
    types = schema.get("type")
    named = "null" in types if isinstance(types, list) else types == "null"
    joined: Iterable[Any] = (
        part for name in ("anyOf", "oneOf") if isinstance(schema.get(name), list) for part in schema[name]
    )
    return (
        named or schema.get("nullable") is True or any(isinstance(p, dict) and _names_null(p) for p in joined)
    )


def _allows_null(schema: Any, root: Any, depth: int = 8) -> bool:
    """Is null a value by this schema?

    Not where there is none: nobody declared the argument.
    """
    if not isinstance(schema, dict) or not depth:
        return schema is True
    if "$ref" in schema:
        return _allows_null(_referred(schema["$ref"], root), root, depth - 1)
    if schema.get("nullable") is True:
        return True
    if "const" in schema or "enum" in schema:
        values = schema.get("enum")
        return None in values if isinstance(values, list) else "const" in schema and schema["const"] is None
    for name, judge in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        if isinstance(schema.get(name), list):
            return judge(_allows_null(part, root, depth - 1) for part in schema[name])
    types = schema.get("type")
    return types is None or types == "null" or (isinstance(types, list) and "null" in types)
