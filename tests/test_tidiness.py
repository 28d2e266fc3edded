"""One name for one thing; first lines and folders that can be taken in at a glance."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("portal", "scheduler", "knowledge", "trainer")
FOLDERS = (*PRODUCT, "tests", "benchmarks", "templates", "static", "docs")
MOST_FILES = 15
LONGEST_FILE, LONGEST_FUNCTION = 300, 50
LONGEST_FIRST_LINE = 80
RELATIVE = re.compile(r"(?:^|[.;:]\s+)(What|Who|Whom|Whose|Whoever|Whatever)\b")
RELATIVE_COMMENT = re.compile(r"(?:^|\s)# (What|Who|Whom|Whose|Whoever|Whatever)\b")
GROWS = {"migrations", "adr"}  # numbered, and read one by one


def modules(*folders: str) -> Iterator[Path]:
    for package in folders or PRODUCT:
        yield from (file for file in sorted((ROOT / package).rglob("*.py")) if "migrations" not in file.parts)


def test_no_class_name_is_given_twice() -> None:
    """Classes within others, private ones and Django's commands are named by where they stand."""
    places: dict[str, list[str]] = defaultdict(list)
    for file in modules():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if (
                isinstance(node, ast.ClassDef)
                and not node.name.startswith("_")
                and "commands" not in file.parts
            ):
                places[node.name].append(str(file.relative_to(ROOT)))
    assert places
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_names_of_the_product_are_imported_as_they_are() -> None:
    """Two things of one name would need two names where both are used; Celery looks for `celery_app`."""
    renamed = {
        f"{file.relative_to(ROOT)}:{node.lineno}": alias.asname
        for file in modules()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PRODUCT
        for alias in node.names
        if alias.asname not in {None, alias.name, "celery_app"}
    }
    assert renamed == {}


def test_no_folder_holds_more_files_than_a_reader_takes_in() -> None:
    folders = [
        folder
        for name in FOLDERS
        for folder in (ROOT / name, *(ROOT / name).rglob("*"))
        if folder.is_dir() and folder.name not in {*GROWS, "__pycache__"}
    ]
    files = {
        str(folder.relative_to(ROOT)): sum(path.is_file() for path in folder.iterdir()) for folder in folders
    }
    assert files["portal"] > 0
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}


def test_files_and_functions_are_short() -> None:
    """Migrations repeat whole tables, and the one of the first release has them all."""
    files = [
        file
        for folder in (*PRODUCT, "tests", "benchmarks")
        for file in (ROOT / folder).rglob("*.py")
        if "migrations" not in file.parts
    ]
    assert files
    long = {}
    for file in (*files, ROOT / "run.py"):
        text, place = file.read_text(encoding="utf-8"), str(file.relative_to(ROOT))
        if (lines := text.count("\n")) > LONGEST_FILE:
            long[place] = lines
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long[f"{place}:{node.lineno}"] = lines
    assert long == {}


def docstrings(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Each docstring of the files, by its place."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if documented and (text := ast.get_docstring(node)):
                yield f"{file.relative_to(ROOT)}:{node.body[0].lineno}", text


def test_the_first_line_of_each_docstring_is_short() -> None:
    firsts = {place: text.partition("\n")[0] for place, text in docstrings([*modules(), ROOT / "run.py"])}
    assert {place: first for place, first in firsts.items() if len(first) > LONGEST_FIRST_LINE} == {}


def test_docstrings_and_comments_begin_with_the_thing_they_are_about() -> None:
    files = [*modules(*PRODUCT, "tests", "benchmarks"), ROOT / "run.py"]
    assert {place: text for place, text in docstrings(files) if RELATIVE.search(text)} == {}
    lines = ((file, line) for file in files for line in file.read_text(encoding="utf-8").splitlines())
    assert [(str(file), line) for file, line in lines if RELATIVE_COMMENT.search(line)] == []
