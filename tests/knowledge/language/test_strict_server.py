"""Language models behind another server than the scripted one: all that they help with, in its wordings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import caches

from knowledge.language.chat import NoAnswer, ask, json_object
from knowledge.language.server import ChatServer
from knowledge.log_formats.asking import shape_by
from knowledge.reading.agent.runs import read_with_model
from knowledge.reading.logs.formats import LogShape
from knowledge.reading.reader import read
from knowledge.reading.types import Tree
from portal.intents.language_model import helped_reading
from tests.knowledge.language.strict_server import MODEL, STYLES, USELESS, StrictChat, message, strict_chat
from tests.portal.intents.saying import said, setting

TEXT = "tune qwen2.5-7b on poems.jsonl, three laps over everything"
TREE = Tree({"train.py": 'knobs = {"how_wide": 16}\nlearn(knobs, rounds=7)\n'}, "python train.py")
LINES = [f"{n}s: fortschritt {5 * n} von 500" for n in range(1, 9)]


def model(asked: str) -> str:
    """The right answer to each of the three tasks; the script's after a look at the file."""
    if "fine-tuning job" in asked:
        return json.dumps({"values": [{"field": "epochs", "value": 3, "words": "three laps"}]})
    if "training's log" in asked:
        return json.dumps({"seconds": 0, "step": 1, "total": 2, "loss": None})
    if "1: knobs" not in asked:
        return json.dumps({"tool": "read", "path": "train.py"})
    lines = {"lora_r": (16, 1), "epochs": (7, 2)}
    fields = {
        name: {"value": value, "file": "train.py", "line": line} for name, (value, line) in lines.items()
    }
    return json.dumps({"fields": fields})


@pytest.fixture(autouse=True)
def nobody_was_silent() -> None:
    caches["counters"].clear()


def server(chat: StrictChat) -> ChatServer:
    return ChatServer(chat.url, MODEL)


def assert_helps(chat: StrictChat) -> None:
    sentence = helped_reading(TEXT, setting(), server(chat))
    assert sentence.fields["epochs"].value == 3
    found = read_with_model(server(chat), TREE, read(TREE), ("lora_r", "epochs"))
    assert {name: (one.value, one.confidence) for name, one in found.items()} == {
        "lora_r": (16, 1.0), "epochs": (7, 1.0),
    }  # fmt: skip
    assert shape_by(server(chat), LINES) == LogShape(seconds=0, step=1, total=2, loss=None)


def object_of(chat: StrictChat) -> Any:
    """The answer about a log, as the client understands it."""
    due = time.monotonic() + 30
    messages = [{"role": "user", "content": "These are lines of a training's log"}]
    answer = ask(server(chat), messages, schema={}, temperature=0, most_tokens=99, due=due)
    return json_object(answer.text)


@pytest.mark.parametrize("style", STYLES)
def test_each_wording_is_understood(style: str) -> None:
    with strict_chat(model, STYLES[style]) as chat:
        found = object_of(chat)
    assert {**found, "tool": None} == {**json.loads(model("training's log")), "tool": None}


@pytest.mark.parametrize("style", ["parts", "call", "reasoning inside"])
def test_all_three_helps_work(style: str) -> None:
    with strict_chat(model, STYLES[style], chunked=True) as chat:
        assert_helps(chat)


def test_all_three_helps_work_without_a_system_role_and_a_temperature() -> None:
    refuses = frozenset({"response_format", "temperature", "max_tokens", "system"})
    with strict_chat(model, STYLES["fence"], refuses) as chat:
        assert_helps(chat)


@pytest.mark.parametrize(
    "refuses",
    [
        frozenset({"response_format"}),
        frozenset({"response_format", "temperature"}),
        frozenset({"max_tokens"}),
        frozenset({"response_format", "temperature", "max_tokens", "system"}),
    ],
    ids=lambda parts: " and ".join(sorted(parts)),
)
def test_parts_of_requests_that_a_server_does_not_know_are_left_out(refuses: frozenset[str]) -> None:
    with strict_chat(model, refuses=refuses) as chat:
        assert object_of(chat) == json.loads(model("training's log"))


@pytest.mark.parametrize("kind", USELESS)
def test_an_answer_without_words_costs_only_its_help(kind: str) -> None:
    with strict_chat(model, lambda _: USELESS[kind]) as chat:
        sentence = helped_reading(TEXT, setting(), server(chat))
        assert sentence.fields == said(TEXT).fields
        assert any("language model did not help" in note for note in sentence.notes)
        assert chat.served <= 3
        with pytest.raises(NoAnswer):
            shape_by(server(chat), LINES)


def test_an_empty_answer_is_asked_for_again() -> None:
    wordings: list[Callable[[str], Any]] = [lambda _: message(None), lambda _: message("Sure!"), message]
    with strict_chat(model, lambda text: wordings.pop(0)(text)) as chat:
        assert helped_reading(TEXT, setting(), server(chat)).fields["epochs"].value == 3
        assert chat.served == 3


def test_another_models_name_is_refused_and_told() -> None:
    with strict_chat(model) as chat:
        reading = helped_reading(TEXT, setting(), ChatServer(chat.url, "gpt-x"))
    assert any("answers with status 400" in note for note in reading.notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "The rate is {3}.",
        "```json\n{}\n```\n```json\n{}\n```",
        "<think>{}",
        "[1]",
        "null",
        "{" * 9_000,
    ],
)
def test_prose_is_no_object(text: str) -> None:
    assert json_object(text) is None
