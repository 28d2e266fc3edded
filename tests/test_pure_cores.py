"""Cores decide and touch nothing: what they import, import-linter checks; built-ins need no import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CORES = ("portal/intents/core", "knowledge/core", "scheduler/core")
OUTSIDE = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}


def reaching_out(source: str) -> Iterator[str]:
    """Built-ins that are called and read, write, show or run something, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OUTSIDE:
            yield f"{node.func.id} in line {node.lineno}"


def test_no_core_calls_a_built_in_that_reaches_out() -> None:
    files = [file for core in CORES for file in (REPOSITORY / core).rglob("*.py")]
    found = {str(file): list(reaching_out(file.read_text(encoding="utf-8"))) for file in files}
    assert len(files) > len(CORES)
    assert not {name: calls for name, calls in found.items() if calls}


def test_a_call_that_reaches_out_is_found() -> None:
    assert list(reaching_out("def f(path):\n    return open(path)\n")) == ["open in line 2"]


def test_every_core_of_the_product_is_looked_at() -> None:
    packages = [REPOSITORY / name for name in ("portal", "scheduler", "knowledge", "trainer")]
    cores = {folder for package in packages for folder in package.rglob("core") if folder.is_dir()}
    assert {str(folder.relative_to(REPOSITORY)) for folder in cores} == set(CORES)
