"""The turns of a chat, as OpenAI's API writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainer.formats import tools, values
from trainer.formats.rows import Message
from trainer.formats.unused import Unused

ROLES = ("system", "developer", "user", "assistant", "tool")
_MAY_BE_BLANK = ("system", "developer", "tool")
_RENAMED = {"function": "tool"}
_REASONING = ("reasoning_content", "reasoning", "thinking")
_CALLS = ("tool_calls", "function_call")
_TOOLS_ONLY = ("tool_call_id",)
_PLAIN = {"role", "content", "weight"}  # most messages have no other fields, and files millions of them
_UNDERSTOOD = {*_PLAIN, "name", *_REASONING, *_CALLS, *_TOOLS_ONLY}
_TOLD_TO_LEARN = (
    "train", "training", "trainable", "train_detail", "training_detail", "loss", "loss_mask", "loss_scale",
    "mask", "masked",
)  # fmt: skip
# Parts without which a row would teach something else than its author meant.
_REFUSED = {
    **dict.fromkeys(_TOLD_TO_LEARN, "write a weight of 0 for what is not to be learnt"),
    "refusal": "write it as the content",
    "images": "only texts can be trained",
    "audio": "only texts can be trained",
}


def turns(
    raw: Any, unused: Unused, offered: Iterable[Mapping[str, Any]], field: str = "messages"
) -> tuple[Message, ...]:
    """All turns of a list that say something: a system turn may be blank.

    offered: the tools of the row. Raises ValueError that names the message.
    """
    if not isinstance(raw, list) or not raw:
        raise ValueError(f"{field} must be a list of at least one message")
    schemas = tools.schemas(offered)
    read = (_message(entry, f"{field}[{index}]", unused, schemas) for index, entry in enumerate(raw))
    return tuple(turn for turn in read if turn.content or turn.role not in ("system", "developer"))


def conversation(turns: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same turns, if there is something to learn. Raises ValueError."""
    if not turns or turns[-1].role != "assistant":
        said = f"the {turns[-1].role}'s" if turns else "a blank one"
        raise ValueError(f"the last message must be the assistant's, not {said}")
    if not any(turn.weight for turn in turns if turn.role == "assistant"):
        raise ValueError("every assistant message has weight 0; there is nothing to learn")
    return turns


def _message(raw: Any, path: str, unused: Unused, schemas: Mapping[str, Any]) -> Message:
    if not isinstance(raw, dict):
        raise ValueError(f"{path} must be an object with role and content")
    role = raw.get("role")
    role = _RENAMED.get(role, role) if isinstance(role, str) else role
    if role not in ROLES:
        raise ValueError(f"{path}.role must be one of {', '.join(ROLES)}")
    if raw.keys() <= _PLAIN:
        return Message(
            role, _content(raw, f"{path}.", may_be_empty=role in _MAY_BE_BLANK), _weight(raw, path)
        )
    if not raw.keys() <= _UNDERSTOOD:
        _note_others(raw, path, unused)
    calls, reasoning = tools.calls(raw, f"{path}.", schemas, unused), _reasoning(raw, f"{path}.")
    if role != "assistant" and (calls or reasoning):
        raise ValueError(f"{path} holds tool calls or reasoning, which only the assistant has")
    name, call_id = (values.optional_text(raw, field, f"{path}.") for field in ("name", "tool_call_id"))
    content = _content(raw, f"{path}.", may_be_empty=bool(calls) or role in _MAY_BE_BLANK)
    return Message(role, content, _weight(raw, path), reasoning, calls, name, call_id)


def _note_others(raw: Mapping[str, Any], path: str, unused: Unused) -> None:
    others = [field for field in raw if field not in _UNDERSTOOD and not values.is_empty(raw[field])]
    if refused := next((field for field in others if field in _REFUSED), None):
        raise ValueError(f"{path}.{refused} cannot be used: {_REFUSED[refused]}")
    unused.note(others, path.partition("[")[0] + "[].")


def _weight(raw: Mapping[str, Any], path: str) -> int:
    weight = raw.get("weight")
    if weight is None:
        return 1
    if isinstance(weight, bool) or weight not in (0, 1):
        raise ValueError(f"{path}.weight must be 0 or 1")
    return int(weight)


def _content(raw: Mapping[str, Any], path: str, *, may_be_empty: bool) -> str:
    """A text, or a list of parts of type text, joined."""
    value = raw.get("content")
    if isinstance(value, list):
        value = "".join(_part(part, f"{path}content[{index}]") for index, part in enumerate(value))
        raw = {"content": value}
    read = values.optional_text if may_be_empty else values.text
    return read(raw, "content", path)


def _part(raw: Any, path: str) -> str:
    kind = raw.get("type", "text") if isinstance(raw, dict) else None
    if kind != "text":
        raise ValueError(f"{path} is of type {str(kind)[:50]}; only parts of type text can be trained")
    value = raw.get("text")
    if not isinstance(value, str):
        raise ValueError(f"{path}.text must be a text")
    return value


def _reasoning(raw: Mapping[str, Any], path: str) -> str:
    given = [values.optional_text(raw, field, path) for field in _REASONING]
    different = sorted({reasoning for reasoning in given if reasoning})
    if len(different) > 1:
        raise ValueError(f"{path}reasoning_content and another field tell different reasonings; keep one")
    return different[0] if different else ""
