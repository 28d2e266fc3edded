"""Formats that are read as chats.

They are OpenAI's messages, ShareGPT's conversations and Alpaca's instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.formats import tools, values
from trainer.formats.messages import ROLES, conversation, turns
from trainer.formats.rows import Chat, Message
from trainer.formats.unused import Unused

_SPEAKERS = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "function": "tool",
    **{role: role for role in ROLES},
}


def messages(raw: Mapping[str, Any], unused: Unused) -> Chat:
    """OpenAI's: `messages`, with `tools` or `functions`; `system` stands before them."""
    offered = tools.offered(raw)
    read = conversation(turns(raw["messages"], unused, offered))
    return Chat(_introduced(raw, read), offered)


def conversations(raw: Mapping[str, Any], unused: Unused) -> Chat:
    """Read ShareGPT's `conversations`.

    They consist of `from` and `value`, or of messages as OpenAI has them.
    """
    entries = raw["conversations"]
    if isinstance(entries, list):
        entries = [_spoken(entry, f"conversations[{index}]") for index, entry in enumerate(entries)]
    offered = tools.offered(raw)
    read = conversation(turns(entries, unused, offered, "conversations"))
    return Chat(_introduced(raw, read), offered)


def _spoken(raw: Any, path: str) -> Any:
    if not isinstance(raw, dict) or "from" not in raw:
        return raw
    speaker, rest = raw["from"], {key: raw[key] for key in raw if key not in ("from", "value")}
    role = _SPEAKERS.get(speaker) if isinstance(speaker, str) else None
    if role is None:
        raise ValueError(f"{path}.from must be one of {', '.join(_SPEAKERS)}")
    if {"role", "content"} & rest.keys():
        raise ValueError(f"{path} has from and value as well as role or content; keep one of both")
    if speaker != "function_call":
        return {**rest, "role": role, "content": raw.get("value")}
    called = values.from_json(values.text(raw, "value", f"{path}."), f"{path}.value")
    return {**rest, "role": role, "tool_calls": called if isinstance(called, list) else [called]}


def _introduced(raw: Mapping[str, Any], read: tuple[Message, ...]) -> tuple[Message, ...]:
    system = values.optional_text(raw, "system")
    if not system:
        return read
    if read[0].role == "system" and read[0].content.strip() == system.strip():
        return read
    if read[0].role == "system":
        raise ValueError("has the field system and a system message; keep one of them")
    return (Message("system", system), *read)


def alpaca(raw: Mapping[str, Any], _unused: Unused) -> Chat:
    """Read Alpaca's `instruction` and `output`.

    `input`, `system` and `history`, a list of pairs, are read with them.
    """
    asked = [values.optional_text(raw, field) for field in ("instruction", "input")]
    request = "\n".join(part for part in asked if part) or values.text(raw, "instruction")
    read = [Message("user", request), Message("assistant", values.text(raw, "output"))]
    history = raw.get("history") or []
    if not isinstance(history, list):
        raise ValueError("history must be a list of pairs of texts")
    earlier = [turn for index, pair in enumerate(history) for turn in _exchange(pair, f"history[{index}]")]
    return Chat(_introduced(raw, (*earlier, *read)))


def _exchange(pair: Any, path: str) -> tuple[Message, Message]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise ValueError(f"{path} must be a pair of texts")
    prompt, answered = dict(zip(("0", "1"), pair, strict=True)), f"{path}."
    return (
        Message("user", values.text(prompt, "0", answered)),
        Message("assistant", values.text(prompt, "1", answered)),
    )
