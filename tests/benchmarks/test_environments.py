"""A benchmark that needs more than `run.py` installs says so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
FILES = sorted(BENCHMARKS.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(BENCHMARKS)))
def test_a_benchmark_that_imports_tests_names_their_environment(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    if any(module.split(".")[0] == "tests" for module in modules):
        assert "run.py setup --dev" in (ast.get_docstring(tree) or "")
