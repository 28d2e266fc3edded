"""Every field of a row is understood, refused with a remedy, or named as not used."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from trainer.formats import (
    Chat,
    FormatError,
    Message,
    PromptCompletion,
    Row,
    Text,
    ToolCall,
    check,
    rows,
)

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
    ("raw", "read"),
    [
        ({"prompt": "", "completion": "c"}, PromptCompletion("", "c")),
        ({"prompt": " \n", "completion": "c"}, PromptCompletion(" \n", "c")),
        ({"prompt": "", "completion": [ANSWER]}, Chat(CHAT[1:])),
        ({"prompt": [], "completion": [ANSWER]}, Chat(CHAT[1:])),
        ({"instruction": "a", "input": " ", "output": "c", "system": "\n", "history": []}, ("a", "c")),
        ({"instruction": "", "input": "a", "output": "c"}, ("a", "c")),
        ({"messages": [{"role": "system", "content": ""}, USER, ANSWER]}, Chat(CHAT)),
        ({"messages": [{"role": "developer", "content": " "}, USER, ANSWER], "system": " "}, Chat(CHAT)),
        ({"messages": [{**USER, "name": " "}, {**ANSWER, "reasoning": "\n"}], "tools": " "}, Chat(CHAT)),
        ({"messages": [USER, ANSWER], "prompt": "", "text": None}, Chat(CHAT)),
        ({"conversations": [], "messages": [USER, ANSWER]}, Chat(CHAT)),
    ],
)
def test_what_is_blank_counts_as_nothing(tmp_path: Path, raw: dict[str, Any], read: Row | tuple[str, str]):
    (tmp_path / "file").write_bytes(written(raw))
    if isinstance(read, tuple):
        read = Chat((Message("user", read[0]), Message("assistant", read[1])))
    assert list(rows(tmp_path / "file")) == [read]
    assert check(io.BytesIO(written(raw))).unused == ()


SYSTEM = {"role": "system", "content": "s"}
ALPACA = {"instruction": "Greet a guest.", "input": "Ann", "output": "Welcome!"}


@pytest.mark.parametrize(
    ("raw", "unused"),
    [
        ({**ALPACA, "text": "### Greet a guest.\n### Ann\n### Welcome!"}, ("text",)),
        ({**ALPACA, "prompt": "Below: Greet a guest. With Ann. Answer: Welcome!"}, ("prompt",)),
        ({**ALPACA, "prompt": "Greet a guest.", "completion": "Welcome!"}, ("prompt", "completion")),
        ({"messages": [USER, ANSWER], "prompt": " hi\n", "prompt_id": "a1"}, ("prompt", "prompt_id")),
        ({"prompt_id": 1, "prompt": "hi", "messages": [SYSTEM, USER, ANSWER]}, ("prompt_id", "prompt")),
        ({"messages": [USER, ANSWER], "text": "<u>hi<a>hello"}, ("text",)),
        ({"messages": [USER, ANSWER], "instruction": "hi", "output": "hello"}, ("instruction", "output")),
        ({"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}],
          "messages": [USER, ANSWER]}, ("conversations",)),
        ({"messages": [USER, ANSWER], "prompt": [USER], "completion": [ANSWER]}, ("prompt", "completion")),
        ({"prompt": "Hi?", "completion": "Ho!", "text": "Q: Hi? A: Ho!"}, ("text",)),
        ({"messages": [SYSTEM, USER, ANSWER], "system": "s"}, ()),
    ],
)  # fmt: skip
def test_a_field_that_repeats_the_rest_is_not_used(raw: dict[str, Any], unused: tuple[str, ...]):
    assert check(io.BytesIO(written(raw))).unused == unused


@pytest.mark.parametrize(
    ("raw", "remedy"),
    [
        ({**ALPACA, "text": "Greet a guest."}, ""),
        ({**ALPACA, "text": "Greet a guest. Ann. Bye!"}, "has both instruction and text"),
        (
            {"messages": [USER, ANSWER], "prompt": "In French: hi"},
            "has both messages and prompt or completion",
        ),
        (
            {"messages": [USER, ANSWER], "prompt": [SYSTEM, USER]},
            "has both messages and prompt or completion",
        ),
        ({"messages": [USER, ANSWER], "prompt": 3}, "has both messages and prompt or completion"),
        ({**ALPACA, "tools": [WEATHER]}, "has tools, which is not read beside instruction"),
    ],
)
def test_a_field_that_says_more_is_refused(raw: dict[str, Any], remedy: str):
    if remedy:
        assert remedy in refused(raw)
    else:  # a part of the rest
        assert check(io.BytesIO(written(raw))).unused == ("text",)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("properties", "arguments", "kept", "dropped"),
    [
        ({"city": {"type": "string", "enum": None}, "street": None},
         {"city": "Bonn", "street": None, "zip": None}, {"city": "Bonn"}, ("street", "zip")),
        ({"city": {"type": ["string", "null"]}, "zip": {"anyOf": [{"type": "null"}, {"type": "string"}]}},
         {"city": None, "zip": None}, {"city": None, "zip": None}, ()),
        ({"city": {"enum": ["Bonn", None]}, "zip": {"enum": ["1"]},
          "at": {"type": "string", "nullable": True}},
         {"city": None, "zip": None, "at": None}, {"city": None, "at": None}, ("zip",)),
        ({"place": schema(city={"type": "string"}),
          "all": {"type": "array", "items": schema(a={"type": "null"})}},
         {"place": {"city": "Bonn", "zip": None}, "all": [{"a": None, "b": None}, None]},
         {"place": {"city": "Bonn"}, "all": [{"a": None}, None]}, ("place.zip", "all.b")),
        ({"place": {"$ref": "#/$defs/place"}, "$defs": None}, {"place": {"zip": None}}, {"place": {}},
         ("place.zip",)),
    ],
)  # fmt: skip
def test_nulls_that_a_schema_does_not_allow_are_left_out_of_arguments(
    tmp_path: Path, properties: dict[str, Any], arguments: dict[str, Any], kept: dict[str, Any],
    dropped: tuple[str, ...],
):  # fmt: skip
    tool = {
        "type": "function",
        "strict": None,
        "function": {"name": "find", "parameters": schema(**properties)},
    }
    call = {"id": "c", "function": {"name": "find", "arguments": arguments}}
    row = {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call]}], "tools": [tool]}
    (tmp_path / "file").write_bytes(written(row))
    (read,) = rows(tmp_path / "file")
    assert isinstance(read, Chat)
    assert read.messages[-1].calls[0].arguments == kept
    assert None not in read.tools[0]["function"]["parameters"]["properties"].values()
    named = check(io.BytesIO(written(row))).unused
    assert named == tuple(f"messages[].tool_calls[].arguments.{name} (null)" for name in dropped)
    call["function"]["arguments"] = json.dumps(arguments)  # into a text, nothing was inserted
    (tmp_path / "file").write_bytes(written(row))
    (read,) = rows(tmp_path / "file")
    assert isinstance(read, Chat)
    assert read.messages[-1].calls[0].arguments == arguments


def test_inserted_nulls_are_left_out_of_tools_and_meant_ones_kept(tmp_path: Path):
    city = {"type": "string", "enum": None, "default": None}
    optional = {"anyOf": [{"type": "string", "pattern": None}, {"type": "null"}], "default": None}
    choice = {"enum": ["a", None], "description": None}
    inserted = {"type": "function", "function": {"name": "f", "strict": None,
                "parameters": schema(city=city, zip=optional, way=choice, street=None)}}  # fmt: skip
    clean = {"type": "function", "function": {"name": "f", "parameters": schema(
        city={"type": "string"}, zip={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        way={"enum": ["a", None]})}}  # fmt: skip
    for given, expected in (([inserted], clean), (json.dumps([inserted]), inserted)):
        (tmp_path / "file").write_bytes(written({"messages": [USER, ANSWER], "tools": given}))
        (read,) = rows(tmp_path / "file")
        assert isinstance(read, Chat)
        assert read.tools == (expected,)


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


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"system_prompt": "s", "question": "q", "response": "a"},
            "rename system_prompt to system, question to instruction, response to output",
        ),
        ({"system_prompt": "s", "messages": [USER, ANSWER]}, "rename system_prompt to system"),
        ({"system_prompt": "s", "instruction": "q", "output": "a"}, "rename system_prompt to system"),
        ({"system_prompt": "s", "prompt": "q", "completion": "a"}, "write the rows with messages"),
        ({"text": "hi", "role": "prompter", "parent_id": None}, "one turn of a conversation"),
        ({"messages": [USER, ANSWER], "rejected_messages": [USER, ANSWER]}, "preference data"),
        ({"text": "a", "sample_weight": 0.5}, "weighs a row"),
        ({"messages": [USER, ANSWER | {"training": False}]}, "write a weight of 0"),
        ({"messages": [USER, ANSWER | {"loss_mask": 0}]}, "write a weight of 0"),
    ],
)
def test_what_public_sets_mean_by_other_names_is_not_lost(row: dict[str, Any], words: str) -> None:
    assert words in refused(row)


def test_a_system_prompt_that_says_nothing_or_repeats_is_no_hindrance() -> None:
    system = {"role": "system", "content": "s"}
    for row in (
        {"system_prompt": " ", "messages": [USER, ANSWER]},
        {"system_prompt": "s", "messages": [system, USER, ANSWER]},
    ):
        assert check(io.BytesIO(written(row))).rows == 1
    assert "rename question to prompt" in refused({"system_prompt": "", "question": "q", "response": "a"})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'[{"text": "a"},]', "has a comma after row 1, the last one; leave it out"),
        (b'[{"text": "a"}]\n[{"text": "b"}]', "write one array, or one object a line"),
    ],
)
def test_what_is_wrong_with_an_array_comes_with_its_remedy(content: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        check(io.BytesIO(content))
