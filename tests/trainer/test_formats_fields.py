"""Every field of a row is understood, refused with a remedy, or named as not used."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from trainer.formats import Chat, FormatError, Message, Row, Text, ToolCall, check, rows

USER, ANSWER = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}
CHAT = (Message("user", "hi"), Message("assistant", "hello"))
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Köln"}'}}
CALLED = ToolCall("weather", {"city": "Köln"}, "c1")


def written(*raw: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in raw)


def refused(*raw: dict[str, Any]) -> str:
    with pytest.raises(FormatError) as caught:
        check(io.BytesIO(written(*raw)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ({"instruction": "a", "input": "b", "output": "c"}, ("a\nb", "c")),
        ({"instruction": "a", "input": "", "output": "c", "system": None}, ("a", "c")),
        (
            {"instruction": "a", "output": "c", "system": "s", "history": [["x", "y"]]},
            Chat(
                (
                    Message("system", "s"),
                    *(Message(r, t) for r, t in zip(("user", "assistant") * 2, "xyac", strict=True)),
                )
            ),
        ),
        ({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "c"}]}, ("a", "c")),
        ({"conversations": [USER, ANSWER]}, Chat(CHAT)),
        (
            {
                "conversations": [
                    {"from": "human", "value": "a"},
                    {"from": "function_call", "value": '{"name": "weather", "arguments": {"city": "Köln"}}'},
                    {"from": "observation", "value": "rain"},
                    {"from": "gpt", "value": "It rains.", "weight": 1},
                ],
                "system": "s",
                "tools": json.dumps([WEATHER["function"]]),
            },
            Chat(
                (
                    Message("system", "s"),
                    Message("user", "a"),
                    Message("assistant", "", calls=(ToolCall("weather", {"city": "Köln"}),)),
                    Message("tool", "rain"),
                    Message("assistant", "It rains."),
                ),
                (WEATHER,),
            ),
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                    },
                    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"},
                    {"role": "tool", "content": "", "tool_call_id": "c1", "name": "weather"},
                    {"role": "assistant", "content": "c", "tool_calls": None, "thinking": "so"},
                ],
                "tools": [WEATHER],
            },
            Chat(
                (
                    Message("user", "ab"),
                    Message("assistant", "", reasoning="hm", calls=(CALLED,)),
                    Message("tool", "", name="weather", call_id="c1"),
                    Message("assistant", "c", reasoning="so"),
                ),
                (WEATHER,),
            ),
        ),
        (
            {
                "messages": [USER, {"role": "assistant", "function_call": CALL["function"]}],
                "functions": [WEATHER["function"]],
            },
            Chat(
                (CHAT[0], Message("assistant", "", calls=(ToolCall("weather", {"city": "Köln"}),))),
                (WEATHER,),
            ),
        ),
        ({"prompt": [USER, ANSWER, USER], "completion": [ANSWER]}, None),
        ({"text": "once"}, Text("once")),
    ],
)
def test_understood(tmp_path: Path, raw: dict[str, Any], read: Row | tuple[str, str] | None):
    (tmp_path / "file").write_bytes(written(raw))
    (found,) = rows(tmp_path / "file")
    if isinstance(read, tuple):
        read = Chat((Message("user", read[0]), Message("assistant", read[1])))
    if read is None:  # a prompt is never learnt, whoever speaks in it
        read = Chat((CHAT[0], Message("assistant", "hello", weight=0), *CHAT))
    assert found == read
    facts = check(io.BytesIO(written(raw)))
    assert facts.unused == ()
    assert facts.text_bytes > 0


PAIR = {"prompt": "a", "completion": "c"}


@pytest.mark.parametrize(
    ("raw", "remedy"),
    [
        ({**PAIR, "label": False}, "keep the rows with good answers and remove the field"),
        ({"prompt": "a", "chosen": "b", "rejected": "c"}, "keep the good answer of each row"),
        ({"messages": [USER, ANSWER], "images": ["a.png"]}, "only texts can be trained"),
        ({**PAIR, "weight": 0.1}, "all rows count alike"),
        ({**PAIR, "system": "s"}, "has system, which is not read beside prompt and completion"),
        ({**PAIR, "tools": [WEATHER]}, "has tools, which need a chat"),
        ({**PAIR, "context": "s"}, "has context, which is not read"),
        ({**PAIR, "text": "s"}, "has both prompt or completion and text"),
        ({"input": "a", "output": "b"}, "rename input to prompt, output to completion"),
        (
            {"question": "a", "context": "b", "answer": "c"},
            "question to instruction, context to input, answer",
        ),
        ({"question": "a", "input": "b", "output": "c"}, "rename question to instruction"),
        ({"instruction": "a", "context": "b", "response": "c"}, "context to input, response to output"),
        ({"prompt": "a", "response": "c"}, "has no completion; rename response to completion in all rows"),
        (
            {"messages": [USER, {**ANSWER, "train": False}]},
            "messages[1].train cannot be used: write a weight of 0",
        ),
        ({"messages": [USER, {**ANSWER, "weight": 0.5}]}, "weight must be 0 or 1"),
        ({"messages": [{**USER, "tool_calls": [CALL]}, ANSWER]}, "which only the assistant has"),
        (
            {"messages": [{**USER, "content": [{"type": "image_url"}]}, ANSWER]},
            "content[0] is of type image_url",
        ),
        ({"messages": [{"role": "system", "content": "s"}, USER, ANSWER], "system": "t"}, "keep one of them"),
        ({"messages": [USER, ANSWER], "tools": "no JSON"}, "tools must be JSON"),
        ({"messages": [USER, ANSWER], "tools": [{}]}, "tools[0] must describe a function with a name"),
        ({"messages": [USER, ANSWER], "tools": [{"name": "a\x00"}]}, "NUL"),
        ({"messages": [USER, {**ANSWER, "tool_calls": [{**CALL, "type": "web"}]}]}, "must call a function"),
        ({"messages": [USER, {**ANSWER, "reasoning": "a", "thinking": "b"}]}, "different reasonings"),
        ({"conversations": [{"from": "robot", "value": "a"}]}, "conversations[0].from must be one of human"),
        ({"conversations": [{"from": "function_call", "value": "f()"}]}, "value must be JSON"),
        ({"instruction": "a", "output": "b", "history": ["x"]}, "history[0] must be a pair"),
    ],
)
def test_refused_with_the_remedy(raw: dict[str, Any], remedy: str):
    assert remedy in refused(raw)


def test_a_remedy_is_the_same_in_all_rows():
    bad = [{**PAIR, "label": index % 2 == 0, "id": index} for index in range(30)]
    reported = refused(*bad).split("; line ")
    assert len(reported) == 20
    assert len({line.split(": ", 1)[1] for line in reported}) == 1


def test_what_is_not_used_is_named():
    turns = [{**USER, "at": 3}, {**ANSWER, "refusal": None}]
    row = {"messages": turns, "id": 1, "meta": {"a": 1}, "images": [], "label": None, "empty": ""}
    assert check(io.BytesIO(written(row, row))).unused == ("id", "meta", "messages[].at")
    many = [{**PAIR, f"field {index}\n{'x' * 900}": 1} for index in range(200)]
    unused = check(io.BytesIO(written(*many))).unused
    assert len(unused) == 20
    assert max(map(len, unused)) <= 50
