"""Tools that a chat offers, and calls of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainer.formats import nulls, values
from trainer.formats.rows import ToolCall
from trainer.formats.unused import Unused


def offered(raw: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return `tools`, or `functions` of an earlier API, as chat templates expect them."""
    if "tools" not in raw and "functions" not in raw:
        return ()
    field = "functions" if values.is_empty(raw.get("tools")) else "tools"
    found = values.objects(raw.get(field), field)
    values.clean_json(found, field)
    if not isinstance(raw.get(field), str):  # into a text, nothing was inserted
        found = nulls.of_schema(found)
    return tuple(_tool(entry, f"{field}[{index}]") for index, entry in enumerate(found))


def _tool(raw: dict[str, Any], path: str) -> dict[str, Any]:
    tool = raw if "function" in raw else {"type": "function", "function": raw}
    function = tool["function"]
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError(f"{path} must describe a function with a name")
    return tool


def schemas(tools: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What the arguments of each function must be, by its name."""
    return {tool["function"]["name"]: tool["function"].get("parameters") for tool in tools}


def calls(
    raw: Mapping[str, Any], path: str, schemas: Mapping[str, Any], unused: Unused
) -> tuple[ToolCall, ...]:
    """`tool_calls` of a message, or what an earlier API called `function_call`.

    schemas: see there; nulls that these do not allow are left out.
    """
    found = values.objects(raw.get("tool_calls"), f"{path}tool_calls")
    if not values.is_empty(raw.get("function_call")):
        found = [*found, {"function": raw["function_call"]}]
    return tuple(
        _call(entry, f"{path}tool_calls[{index}]", schemas, unused) for index, entry in enumerate(found)
    )


def _call(raw: dict[str, Any], path: str, schemas: Mapping[str, Any], unused: Unused) -> ToolCall:
    function = raw.get("function", raw)
    if not isinstance(function, dict) or raw.get("type", "function") != "function":
        raise ValueError(f"{path} must call a function")
    name = values.text(function, "name", f"{path}.")
    arguments = function.get("arguments")
    is_text = isinstance(arguments, str)
    if isinstance(arguments, str) and arguments.strip():
        arguments = values.from_json(arguments, f"{path}.arguments")
    arguments = {} if values.is_empty(arguments) else arguments
    if not isinstance(arguments, dict):
        raise ValueError(f"{path}.arguments must be an object")
    values.clean_json(arguments, f"{path}.arguments")
    if not is_text:
        where = f"{path.partition('[')[0]}[].tool_calls[].arguments."
        arguments = nulls.of_arguments(arguments, schemas.get(name), unused, where)
    return ToolCall(name, arguments, values.optional_text(raw, "id", f"{path}."))
