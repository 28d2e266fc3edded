"""Strict JSON: its refusals, and its bounds on time and memory.

The bounds are tested at the largest size that any endpoint takes.
"""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.hostile import JSON_KINDS, bounded, json_texts, peak_bytes
from trainer import strict_json

SYNC_BYTES = 8_000_000  # a node's
FEWER_BYTES = 1_000_000  # of which more is read
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "whole", "number"),
    [
        ("3", True, True),
        ("-3", True, True),
        ("3.0", False, True),
        ("true", False, False),
        ('"3"', False, False),
        ("null", False, False),
        ("[3]", False, False),
    ],
)
def test_numbers_are_those_of_json(text: str, whole: bool, number: bool) -> None:
    value = strict_json.loads(text)
    assert (strict_json.is_whole(value), strict_json.is_number(value)) == (whole, number)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "holds a twice in one object"),
        ('[{"a": {"b": 1, "b": 1}}]', "holds b twice in one object"),
        ("[NaN]", "holds NaN, which is not JSON"),
        ("-Infinity", "holds -Infinity, which is not JSON"),
        ("1e999", "holds the number 1e999, which is too large"),
        ("9" * 5000, "holds a number of thousands of digits"),
        ("[" * 33 + "]" * 33, "is nested too deeply: more than 32 levels"),
        ("[" * 5000 + "]" * 5000, "is nested too deeply"),
        (f"[{'0,' * 100_000}0]", "holds more than 100,000 values"),
        (b'"\xe9"', "is not UTF-8 (byte 2)"),
    ],
)
def test_refused_with_a_reason(text: str | bytes, message: str) -> None:
    with pytest.raises(strict_json.RefusedJson) as refused:
        strict_json.loads(text)
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{a: 1}", "'a'", '"a" "b"'])
def test_broken_json_is_told_by_its_place(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        strict_json.loads(text)


@given(values)
@settings(max_examples=50, deadline=None, derandomize=True, database=None)
def test_what_is_json_is_read_as_it_was_written(value: object) -> None:
    assert strict_json.loads(json.dumps(value)) == value
    assert strict_json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value


def test_commas_and_brackets_within_texts_are_no_values() -> None:
    text = '[tqdm, {1}] \\" ' * 100_000
    assert strict_json.loads(json.dumps({"text": text})) == {"text": text}


def test_the_deepest_and_the_most_that_is_read() -> None:
    assert strict_json.loads("[" * 32 + "]" * 32)
    assert len(strict_json.loads(f"[{'0,' * 99_998}0]")) == 99_999


@pytest.mark.parametrize("name", JSON_KINDS)
def test_the_largest_texts_take_bounded_time_and_memory(name: str) -> None:
    def read(raw: bytes) -> None:
        with suppress(ValueError):
            strict_json.check_texts(strict_json.loads(raw))

    with bounded(seconds=5):
        read(json_texts(SYNC_BYTES)[name].encode())
    raw = json_texts(FEWER_BYTES)[name].encode()
    assert peak_bytes(lambda: read(raw)) < 30 * len(raw)


@pytest.mark.parametrize(
    ("value", "message"), [(["a\x00"], "NUL"), ({"\ud800": 1}, "surrogate"), ({"a": ["\udfff"]}, "half")]
)
def test_texts_that_no_database_keeps_are_named(value: object, message: str) -> None:
    with pytest.raises(strict_json.RefusedJson, match=message):
        strict_json.check_texts(value)
    strict_json.check_texts([{"größe": ["\U0001f600"]}, 1, None])
