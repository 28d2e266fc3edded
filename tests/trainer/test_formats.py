"""Table "JSONL upload" of reliability.md, as far as the file's content decides."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness.hostile import bounded, json_texts
from trainer.formats import Chat, FormatError, Message, PromptCompletion, check, rows

HOSTILE = json_texts(900_000)
GOOD = b'{"prompt": "2+2?", "completion": "4"}'
CHAT = b'{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}'


def errors(content: bytes, **limits: int) -> list[tuple[int, str]]:
    with pytest.raises(FormatError) as caught:
        check(io.BytesIO(content), **limits)
    return [(error.line, error.message) for error in caught.value.errors]


def chat(*turns: dict[str, object]) -> bytes:
    return json.dumps({"messages": turns}).encode()


def test_facts_of_a_prompt_completion_file():
    facts = check(io.BytesIO(GOOD + b"\n" + GOOD + b"\n"))
    assert (facts.rows, facts.format, facts.text_bytes) == (2, "prompt_completion", 10)
    assert facts.lengths == ((5, 2),)


def test_facts_of_a_chat_file_count_the_plain_rendering():
    facts = check(io.BytesIO(CHAT))
    assert facts.format == "chat"
    assert facts.text_bytes == len("user: hi\nassistant: hello\n")


def test_lengths_are_bucketed_upper_bounds_that_cover_all_rows():
    content = b"".join(
        json.dumps({"prompt": "p", "completion": "x" * size}).encode() + b"\n" for size in range(1, 2000)
    )
    facts = check(io.BytesIO(content))
    assert sum(count for _, count in facts.lengths) == 1999
    assert len(facts.lengths) <= 200
    assert facts.text_bytes <= sum(size * count for size, count in facts.lengths) <= 1.09 * facts.text_bytes


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + GOOD + b"\n",
        GOOD + b"\r\n" + GOOD + b"\r\n",
        GOOD + b"\n" + GOOD,
        b"\n\n" + GOOD + b"\n  \n",
        GOOD[:-1] + b', "source": "mine"}',
        chat(
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {"role": "tool", "content": "42"},
            {"role": "assistant", "content": "ok", "weight": 1},
        ),
        '{"prompt": "größe", "completion": "\\ud83d\\ude00"}'.encode(),
    ],
    ids=["BOM", "CRLF", "no newline at the end", "blank lines", "extra field", "all roles", "emoji escape"],
)
def test_accepted(content: bytes):
    assert check(io.BytesIO(content)).rows >= 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b'{"prompt": "caf\xe9", "completion": "x"}', "not UTF-8"),
        (GOOD.decode().encode("utf-16"), "UTF-16"),
        (b"[1, 2]", "is a JSON array that holds something else than objects"),
        (b"[" + GOOD + GOOD + b"]", "objects with commas between them"),
        (b"[" + GOOD + b",]", "leave it out"),
        (b"[" + GOOD, "the JSON array has no end"),
        (b"[" + GOOD + b"]\n" + GOOD, "goes on after its JSON array"),
        (b"[" + GOOD + b", {}]", "row 2 of the array needs the field messages"),
        (b"[]", "the file is empty"),
        (b'{\n"prompt": "x",\n"completion": "y"\n}', "write each object on one line"),
        (b'"text"', "must be a JSON object"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"prompt": "x", "completion": "y", "z": ' + b"[" * 200_000, "nested too deeply"),
        (b'{"prompt": "x", "completion": NaN}', "NaN"),
        (b'{"prompt": "x", "completion": "y", "w": -Infinity}', "-Infinity"),
        (b'{"prompt": "x"}', "completion is missing"),
        (b'{"prompt": "x", "completion": null}', "completion is missing"),
        (b'{"prompt": "x", "completion": " "}', "completion is empty"),
        (
            b'{"completion": "y"}',
            "prompt is missing; write an empty text for a completion that follows nothing",
        ),
        (b'{"prompt": 3, "completion": "y"}', "prompt must be a text"),
        (b'{"id": "x"}', "needs the field messages"),
        (b'{"instruction": "x"}', "output is missing"),
        (b'{"question": "x", "answer": "y"}', "rename question to prompt, answer to completion"),
        (b"prompt,completion", "is not JSON; convert CSV or plain text"),
        (b'{"prompt": "x",', "does not end on this line"),
        (GOOD + b",", "leave out the comma"),
        (GOOD + GOOD, "write each object on a line of its own"),
        (b'{"prompt": "x", "prompt": "y", "completion": "z"}', "holds prompt twice"),
        (b'{"prompt": "x", "completion": "y", "n": ' + b"9" * 5000 + b"}", "a number of thousands of digits"),
        (b'{"prompt": "x", "completion": "y", "messages": [1]}', "both"),
        (b'{"prompt": "x", "completion": "\\ud800"}', "surrogate"),
        (b'{"prompt": "x", "completion": "a\\u0000b"}', "NUL"),
        (b'{"prompt": "x", "completion": "a\x00b"}', "binary"),
        (b'{"prompt": "x", "completion": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"messages": []}', "at least one message"),
        (b'{"messages": ["hi"]}', "messages[0] must be an object"),
        (chat({"role": "robot", "content": "x"}), "messages[0].role"),
        (chat({"role": "user", "content": "x"}), "last message must be the assistant's"),
        (chat({"role": "assistant", "content": ""}), "messages[0].content is empty"),
        (chat({"role": "assistant"}), "messages[0].content is missing"),
        (chat({"role": "assistant", "content": "x", "weight": 0.5}), "weight must be 0 or 1"),
        (chat({"role": "assistant", "content": "x", "weight": 0}), "nothing to learn"),
        (pickle.dumps({"a": 1}), "pickle"),
        (gzip.compress(GOOD), "gzip"),
    ],
)
def test_refused_with_a_reason(content: bytes, message: str):
    found = errors(content)
    assert found[0][0] == 1
    assert message in found[0][1]


def test_a_zip_archive_is_refused_before_unpacking():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("../train.jsonl", GOOD)
    assert "zip archive" in errors(archive.getvalue())[0][1]


def test_ten_million_brackets_are_refused_within_a_second():
    begun = time.process_time()
    assert "JSON array" in errors(b"[" * 10_000_000)[0][1]
    assert "longer than" in errors(b'{"a":' + b"[" * 10_000_000)[0][1]
    assert time.process_time() - begun < 1


def test_an_array_is_read_as_its_objects_on_lines(tmp_path: Path):
    objects = [{"prompt": f'{n} ] }} \\ " [', "completion": "é" * 70_000 * (n % 2) + "."} for n in range(9)]
    content = {
        "lines": "\n".join(map(json.dumps, objects)),
        "pretty": "\ufeff\n " + json.dumps(objects, indent=2, ensure_ascii=False) + "\n\n",
        "one": json.dumps(objects),
        "dense": json.dumps(objects, separators=(",", ":")),
    }
    for name, text in content.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert list(rows(tmp_path / name)) == list(rows(tmp_path / "lines")), name
        assert check(io.BytesIO(text.encode())) == check(io.BytesIO(content["lines"].encode())), name
    objects[3] = {"prompt": "x"}
    pretty, line = json.dumps(objects, indent=2), 2 + 3 * 4
    assert errors(pretty.encode()) == [(line, "row 4 of the array completion is missing")]


def test_a_huge_row_of_an_array_is_refused_without_reading_on():
    stream = io.BytesIO(b"[" + GOOD + b', {"prompt": "' + b"x" * 3_000_000)
    with pytest.raises(FormatError, match="line 1: row 2 is longer than 1000000 bytes"):
        check(stream)
    assert stream.tell() < 1_200_000


def test_a_huge_line_is_refused_without_reading_on():
    stream = io.BytesIO(GOOD + b"\n" + b'{"prompt": "' + b"x" * 3_000_000)
    with pytest.raises(FormatError, match="line 2: is longer than 1000000 bytes"):
        check(stream)
    assert stream.tell() < 1_100_000


def test_too_many_rows_are_refused():
    assert "more than 2 rows" in errors((GOOD + b"\n") * 3, max_rows=2)[0][1]


def test_mixed_formats_name_the_first_other_line():
    assert errors(GOOD + b"\n" + CHAT + b"\n") == [(2, "is chat, but the lines before are prompt_completion")]


def test_the_first_twenty_bad_lines_are_listed():
    found = errors((GOOD + b"\n" + b"{}\n") * 30)
    assert [line for line, _ in found] == list(range(2, 42, 2))


def test_rows_reads_both_formats(tmp_path: Path):
    (tmp_path / "a").write_bytes(GOOD + b"\r\n")
    (tmp_path / "b").write_bytes(CHAT)
    assert list(rows(tmp_path / "a")) == [PromptCompletion("2+2?", "4")]
    assert list(rows(tmp_path / "b")) == [Chat((Message("user", "hi"), Message("assistant", "hello")))]


def test_an_object_over_many_lines_is_one_mistake_not_twenty() -> None:
    assert errors(json.dumps({"prompt": "x", "completion": "y"}, indent=1).encode()) == [
        (1, "begins an object that does not end on this line; write each object on one line")
    ]


def test_a_call_of_no_tool_is_named() -> None:
    turn = {"role": "assistant", "content": None, "tool_calls": [{}]}
    assert errors(chat({"role": "user", "content": "hi"}, turn)) == [
        (1, "messages[1].tool_calls[0].name is missing")
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_longest_lines_take_bounded_time(name: str) -> None:
    """The longest lines are checked in bounded time.

    A megabyte of keys with one twice at the end was once looked through for each key, for minutes.
    """
    line = f'{{"prompt": "x", "completion": "y", "z": {HOSTILE[name]}}}'.encode()
    with bounded(seconds=5), suppress(FormatError):
        check(io.BytesIO(line + b"\n" + line))
