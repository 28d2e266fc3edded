"""One name for one thing; first lines and folders that can be taken in at a glance."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("portal", "scheduler", "knowledge", "trainer")
OURS = (*PRODUCT, "tests", "benchmarks")
FOLDERS = (*OURS, "templates", "static", "docs")
MOST_FILES = 15
LONGEST_FILE, LONGEST_FUNCTION = 300, 50
LONGEST_FIRST_LINE = 80
RELATIVE = re.compile(r"(?:^|[.;:]\s+)(What|Who|Whom|Whose|Whoever|Whatever)\b")
RELATIVE_COMMENT = re.compile(r"(?:^|\s)# (What|Who|Whom|Whose|Whoever|Whatever)\b", re.MULTILINE)
GROWS = {"migrations", "adr"}  # numbered, and read one by one


@dataclass(slots=True)
class SourceFile:
    """The parts of a file that the rules are about; each list names lines."""

    place: str
    text: str
    classes: list[str] = field(default_factory=list)  # at the file's top
    renamed: list[tuple[int, str | None]] = field(default_factory=list)  # names of ours
    functions: list[tuple[int, int]] = field(default_factory=list)  # with their lengths
    docstrings: list[tuple[int, str]] = field(default_factory=list)

    def note(self, node: ast.AST) -> None:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OURS:
            self.renamed += [
                (node.lineno, alias.asname) for alias in node.names if alias.asname not in {None, alias.name}
            ]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions.append((node.lineno, (node.end_lineno or 0) - node.lineno + 1))
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            self.docstrings.append((node.body[0].lineno, text))


@cache
def read(path: Path) -> SourceFile:
    """Parse a file once for all tests."""
    file = SourceFile(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    tree = ast.parse(file.text)
    file.classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in ast.walk(tree):
        file.note(node)
    return file


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


def test_no_class_name_is_given_twice() -> None:
    """Classes within others and Django's commands are named by where they stand."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in (*modules(), ROOT / "run.py"):
        if "commands" not in path.parts:
            for name in read(path).classes:
                places[name].append(read(path).place)
    assert places
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_names_of_ours_are_imported_as_they_are() -> None:
    """Two things of one name would need two names where both are used; Celery looks for `celery_app`."""
    renamed = {
        f"{file.place}:{line}": name
        for file in map(read, modules(*OURS))
        for line, name in file.renamed
        if name != "celery_app"
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
    files = [read(path) for path in (*modules(*OURS), ROOT / "run.py")]
    long = {file.place: lines for file in files if (lines := file.text.count("\n")) > LONGEST_FILE}
    long |= {
        f"{file.place}:{line}": lines
        for file in files
        for line, lines in file.functions
        if lines > LONGEST_FUNCTION
    }
    assert long == {}


def docstrings(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Each docstring of the files, by its place."""
    for file in map(read, files):
        yield from ((f"{file.place}:{line}", text) for line, text in file.docstrings)


def test_the_first_line_of_each_docstring_is_short() -> None:
    firsts = {place: text.partition("\n")[0] for place, text in docstrings([*modules(), ROOT / "run.py"])}
    assert {place: first for place, first in firsts.items() if len(first) > LONGEST_FIRST_LINE} == {}


def test_docstrings_and_comments_begin_with_the_thing_they_are_about() -> None:
    files = [*modules(*OURS), ROOT / "run.py"]
    assert {place: text for place, text in docstrings(files) if RELATIVE.search(text)} == {}
    commented = {file.place: RELATIVE_COMMENT.findall(file.text) for file in map(read, files)}
    assert {place: found for place, found in commented.items() if found} == {}
