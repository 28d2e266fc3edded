"""Rules that hold for every file: one reading of numbers, first lines of docstrings that fit a line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("portal", "scheduler", "knowledge", "trainer", "client")
LONGEST_FIRST_LINE = 80


def modules(*folders: str) -> Iterator[Path]:
    """Migrations are left out: they repeat whole tables, and the one of the first release has them all."""
    for package in folders or PRODUCT:
        yield from (file for file in sorted((ROOT / package).rglob("*.py")) if "migrations" not in file.parts)


def test_command_lines_read_numbers_by_one_rule() -> None:
    """`whole` and `decimal` of trainer.written: Python's own types also read 1_000 and other digits."""
    python_reads = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in [*modules(), ROOT / "run.py", *modules("tests/chaos")]
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "type" and isinstance(word.value, ast.Name) and word.value.id in ("int", "float")
    ]
    assert python_reads == []


def docstrings(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Each docstring of the files, by its place."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield f"{file.relative_to(ROOT)}:{node.body[0].lineno}", text


def test_the_first_line_of_each_docstring_is_short() -> None:
    firsts = {place: text.partition("\n")[0] for place, text in docstrings([*modules(), ROOT / "run.py"])}
    assert {place: first for place, first in firsts.items() if len(first) > LONGEST_FIRST_LINE} == {}
