"""Lines of a log that runs which succeeded do not have."""

from __future__ import annotations

from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.failures.unusual import MOST_UNUSUAL, unusual_lines
from tests.harness import hostile

USUAL = ["loading the model", "step 1/9 loss 2.1", "step 2/9 loss 2.0", "saved"] * 20


def lines(*texts: str) -> list[LogLine]:
    return [LogLine(number, text) for number, text in enumerate(texts, start=1)]


def test_words_that_others_lack_are_unusual_and_numbers_say_nothing() -> None:
    log = lines("loading the model", *(f"step {n}/99 loss 1.{n}" for n in range(30)), "valve stuck", "")
    (first, *_), last = unusual_lines(log, USUAL), unusual_lines(log, USUAL)[-1]
    assert first.text == "loading the model"
    assert last.text == "valve stuck"
    many = lines(*(f"new thing {'x' * n}" for n in range(2, 40)), "saved")
    assert len(unusual_lines(many, USUAL)) == MOST_UNUSUAL
    assert "saved" not in [line.text for line in unusual_lines(many, USUAL)]


def test_of_lines_with_the_same_words_the_first_counts() -> None:
    assert [line.number for line in unusual_lines(lines("bad 1", "bad 2"), [])] == [1]
    assert unusual_lines([], USUAL) == []


def test_hostile_logs_cost_little() -> None:
    with hostile.bounded(seconds=5):
        unusual_lines(lines(*["word " * 100_000] * 20, "\x00" * 100_000), ["a " * 1_000_000])
