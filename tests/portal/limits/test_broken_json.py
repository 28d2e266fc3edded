"""Bodies that are no JSON: field, line and remedy are told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.hostile import bounded
from tests.portal.conftest import Program

FINITE = "give a finite number, or leave the field out"


def refusal(api: Program, raw: str | bytes) -> dict[str, Any]:
    answer = api.post("/api/jobs/", raw, content_type="application/json")
    assert answer.status_code == 400, answer.content
    error: dict[str, Any] = answer.json()["error"]
    assert error["code"] == "parse_error"
    return error


@pytest.mark.parametrize(
    ("raw", "path", "problem"),
    [
        ('{"model": "m", "budget": NaN}', "budget", f"is NaN, which is not JSON; {FINITE}"),
        ('{"params": {"lora_r": -Infinity}}', "params.lora_r", f"is -Infinity, which is not JSON; {FINITE}"),
        ('{"after": [{"job": "j"}, {"job": Infinity}]}', "after.1.job", "Infinity"),
        ('{"budget": 1e999}', "budget", f"is 1e999, which is too large; {FINITE}"),
        (
            '{"retries": ' + "9" * 5000 + "}",
            "retries",
            "holds a number of thousands of digits; give a smaller one",
        ),
        ('{"params": {"seed": 1, "seed": 2}}', "params.seed", "is there twice; keep one of them"),
        ('{"name": "a\\u0000b"}', "name", "holds a NUL character; remove it"),
        ('{"name": "\\ud800"}', "name", "surrogate"),
        ('{"a\\u0000": 1}', "a\ufffd", "has a name that is no text; remove it"),
    ],
)
def test_a_value_that_is_no_json_is_named_by_its_path(
    api: Program, raw: str, path: str, problem: str
) -> None:
    error = refusal(api, raw)
    (message,) = error["fields"].values()
    assert list(error["fields"]) == [path]
    assert problem in message
    assert error["message"] == f"{path}: {message}"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ('{"model": "m",\n "retries": 1,}', "at line 2, column 15: expecting property name enclosed in double"
         " quotes; put each name in double quotes, and no comma after the last value."),
        ("{'model': 1}", "put each name in double quotes"),
        ('{"preemptible": True}', "at line 1, column 17: expecting value; put a value there: a text in"),
        ('{"model": "m" "retries": 1}', "put a comma between two values"),
        ('{"model" "m"}', "put a colon between a name and its value"),
        ('{"model": "m"', "close each bracket"),
        ('{"model": "m', "at line 1, column 11: unterminated string starting; end the text with"),
        ('{"name": "a\nb"}', "write a line break as \\n"),
        ('{"name": "C:\\temp\\x"}', "write a backslash in a text as two"),
        ("{} {}", "send one JSON value with nothing after it"),
        (" ", "The body is empty; send a JSON object."),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark; save it as UTF-8 without one."),
        (b'{"name": "\xe9"}', "The body is not UTF-8 (byte 11)."),
        ("NaN", f"The body is NaN, which is not JSON; {FINITE}."),
    ],
)  # fmt: skip
def test_what_does_not_parse_is_told_by_line_and_column(api: Program, raw: str | bytes, message: str) -> None:
    error = refusal(api, raw)
    assert message in str(error["message"])
    assert error["fields"] == {}


def test_a_long_path_is_cut_and_costs_little(api: Program) -> None:
    name = "n" * 400_000
    raw = f'{{"{name}": {{"{name}": [{"0," * 50_000}NaN]}}}}'
    with bounded(seconds=2):
        (path,) = refusal(api, raw)["fields"]
    assert path == f"{'n' * 50}.{'n' * 50}.50000"
