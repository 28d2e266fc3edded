"""Tools that a chat offers, and calls of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.formats import values
from trainer.formats.rows import ToolCall


def offered(raw: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return `tools`, or `functions` of an earlier API, as chat templates expect them."""
    if "tools" not in raw and "functions" not in raw:
        return ()
    field = "functions" if values.is_empty(raw.get("tools")) else "tools"
    found = values.objects(raw.get(field), field)
    values.clean_json(found, field)
    return tuple(_tool(entry, f"{field}[{index}]") for index, entry in enumerate(found))


def _tool(raw: dict[str, Any], path: str) -> dict[str, Any]:
    tool = raw if "function" in raw else {"type": "function", "function": raw}
    function = tool["function"]
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError(f"{path} must describe a function with a name")
    return tool


def calls(raw: Mapping[str, Any], path: str) -> tuple[ToolCall, ...]:
    """`tool_calls` of a message, or what an earlier API called `function_call`."""
    found = values.objects(raw.get("tool_calls"), f"{path}tool_calls")
    if not values.is_empty(raw.get("function_call")):
        found = [*found, {"function": raw["function_call"]}]
    return tuple(_call(entry, f"{path}tool_calls[{index}]") for index, entry in enumerate(found))


def _call(raw: dict[str, Any], path: str) -> ToolCall:
    function = raw.get("function", raw)
    if not isinstance(function, dict) or raw.get("type", "function") != "function":
        raise ValueError(f"{path} must call a function")
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments.strip():
        arguments = values.from_json(arguments, f"{path}.arguments")
    arguments = {} if values.is_empty(arguments) else arguments
    if not isinstance(arguments, dict):
        raise ValueError(f"{path}.arguments must be an object")
    values.clean_json(arguments, f"{path}.arguments")
    return ToolCall(
        values.text(function, "name", f"{path}."), arguments, values.optional_text(raw, "id", f"{path}.")
    )
