"""Chats in real templates are trained exactly where a plain implementation says so."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.train.data.chat_templates import (
    CHATML,
    DEEPSEEK,
    GEMMA,
    MARKED,
    QWEN,
    TEMPLATES,
    TODAY,
    Piece,
    Turn,
)
from trainer import builtin

pytestmark = pytest.mark.torch

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
# Texts that an attacker or a talk about templates would write into a turn.
TRAPS = ("<|im_start|>assistant\n", "<|im_end|>\n", "</s>", "[/INST]", "<start_of_turn>model\n", "<|eot_id|>")
TRAPS = (*TRAPS, "<think>\nno\n</think>\n\n", "tool_call", "größer", "\n\n", "  ", "{}", "assistant: ")


def words(chance: random.Random, number: int) -> str:
    """A text of no other turn, with traps in it."""
    return f"{number}{''.join(chance.choices(TRAPS, k=chance.randrange(3)))} said {number * 7}"


def chat(chance: random.Random, can: frozenset[str]) -> tuple[list[Turn], list[Any]]:
    """A random chat with what a template can show, as a row holds it and templates take it."""
    tools = [TOOL] if "tools" in can and chance.random() < 0.6 else []
    turns: list[Turn] = []

    def say(role: str, **more: Any) -> None:
        turns.append({"role": role, "content": words(chance, len(turns)), **more})

    def reason() -> dict[str, str]:
        thought = "reasoning" in can and chance.random() < 0.6
        return {"reasoning_content": f"thought {len(turns)}"} if thought else {}

    if "system" in can and chance.random() < 0.5:
        say("system")
    for _ in range(chance.randint(1, 3)):
        say("user")
        for _ in range(chance.randrange(3) if tools else 0):
            calls = [
                {"type": "function", "id": f"id{len(turns):03}{index:04}", "function": call}
                for index in range(1 + ("parallel" in can) * chance.randrange(2))
                if (call := {"name": "weather", "arguments": {"city": words(chance, index)}})
            ]
            turns.append({"role": "assistant", "content": "", "tool_calls": calls, **reason()})
            for call in calls:
                say("tool", tool_call_id=call["id"])
        say("assistant", **reason())
    return turns, tools


def joined(pieces: list[Piece], *, trained: bool) -> str:
    return "".join(text for text, learnt in pieces if learnt or not trained)


@pytest.fixture
def tokenizer(models_dir: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(builtin.ensure("builtin/tiny-llama", models_dir))


def test_random_chats_are_trained_as_a_plain_implementation_says(tokenizer: Any):
    from trainer.formats import Unused, parse_row
    from trainer.train.data.template import Template

    chance = random.Random(5)
    for name, (template, plain, can) in TEMPLATES.items():
        tokenizer.chat_template = template
        drawn = Template(tokenizer, TODAY)
        for _ in range(60):
            turns, tools = chat(chance, can)
            _, row = parse_row(json.dumps({"messages": turns, "tools": tools}).encode(), Unused())
            text, parts = drawn.render(row)
            pieces = plain(turns, tools)
            assert text == joined(pieces, trained=False), name
            learnt = "".join(text[begin:end] for spans in parts for begin, end in spans)
            assert learnt == joined(pieces, trained=True), name


def drawn(tokenizer: Any, template: str, *turns: Turn, **fields: Any) -> tuple[str, list[str], int]:
    """(text, trained parts, chats with thoughts that the template left out)."""
    from trainer.formats import Unused, parse_row
    from trainer.train.data.template import Template

    tokenizer.chat_template = template
    with_clock = Template(tokenizer, TODAY)
    _, row = parse_row(json.dumps({"messages": turns, **fields}).encode(), Unused())
    text, parts = with_clock.render(row)
    learnt = [text[begin:end] for spans in parts for begin, end in spans]
    return text, learnt, with_clock.thoughtless


USER, ANSWER = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}
CALL = {"id": "abcdefghi", "function": {"name": "weather", "arguments": {}}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def test_what_a_template_does_not_show_is_refused_or_counted(tokenizer: Any):
    from trainer.train.errors import TrainError

    for turns, fields, message in (
        ((USER, ANSWER), {"tools": [TOOL]}, "does not show it the tools of the data"),
        ((USER, CALLING), {}, "does not show it the tool calls"),
        ((USER, {**ANSWER, "reasoning_content": "hm"}), {}, "does not show it the reasoning"),
    ):
        with pytest.raises(TrainError, match=message):
            drawn(tokenizer, CHATML, *turns, **fields)
    with pytest.raises(TrainError, match="refuses a row: System role not supported"):
        drawn(tokenizer, GEMMA, {"role": "system", "content": "be brief"}, USER, ANSWER)
    with pytest.raises(TrainError, match="template cannot be read"):
        drawn(tokenizer, "{% for %}", USER, ANSWER)
    thinking = {**ANSWER, "content": "<think>so</think>hello"}
    assert drawn(tokenizer, DEEPSEEK, USER, thinking, USER, ANSWER)[1:] == (["hello</s>", "hello</s>"], 1)


def test_a_weight_of_zero_holds_whatever_tells_the_turns(tokenizer: Any):
    silent = {**ANSWER, "weight": 0}
    for template, end in ((MARKED, ""), (CHATML, "\n")):
        assert drawn(tokenizer, template, USER, silent, USER, ANSWER)[1] == [f"hello<|im_end|>{end}"]
    thinking = {**silent, "content": "other", "reasoning_content": "hm"}
    trained = drawn(tokenizer, QWEN, USER, thinking, USER, {**ANSWER, "reasoning": "so"})
    assert trained[1:] == (["<think>\nso\n</think>\n\nhello<|im_end|>\n"], 1)  # its first reasoning is cut


def test_calls_without_an_id_get_one_that_their_answers_name(tokenizer: Any):
    ids = (
        "{% for m in messages %}"
        "{% for c in m.tool_calls or [] %}{{ c.id + c.function.name + ' ' }}{% endfor %}"
        "{{ (m.tool_call_id or '') + m.content + ' ' }}{% endfor %}"
    )
    call = {"function": {"name": "f", "arguments": "{}"}}
    turns = {**CALLING, "tool_calls": [call, call]}, {"role": "tool", "content": "1"}
    text, *_ = drawn(tokenizer, ids, USER, *turns, {"role": "tool", "content": "2"}, ANSWER)
    assert text == "hi call00000f call00001f  call000001 call000012 hello "
