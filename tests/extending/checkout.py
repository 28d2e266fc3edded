"""A copy of the tree that is extended by one toy of each kind.

Each toy is added by its checklist in CONTRIBUTING alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPIED = (
    "portal",
    "scheduler",
    "knowledge",
    "trainer",
    "client",
    "tests",
    "templates",
    "static",
    "docs",
    "benchmarks",
)
_UNCOPIED = shutil.ignore_patterns("node_modules", "screenshots", "*.pyc.*")  # *.pyc.*: being written


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """One toy of a kind that the portal can be extended by.

    lines: by file, lines of the tree with their replacements. migration: the file that Django writes.
    """

    kind: str  # its folder in toys/
    heading: str  # of its checklist
    lines: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    migration: str = ""

    @property
    def folder(self) -> Path:
        return HERE / "toys" / self.kind

    @property
    def files(self) -> list[str]:
        """All that adding it touches."""
        new = [path for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        written = {self.migration} - {""}
        return sorted({*self.lines, *written, *(path.relative_to(self.folder).as_posix() for path in new)})

    @property
    def tests(self) -> list[str]:
        """Its own tests."""
        return [name for name in self.files if Path(name).name.startswith("test_")]

    @property
    def checklist(self) -> str:
        """The text below its heading."""
        reported = (ROOT / "CONTRIBUTING.md").read_text()
        return re.split(
            r"^##", reported.partition(f"### {self.heading}\n")[2], maxsplit=1, flags=re.MULTILINE
        )[0]

    def add_to(self, checkout: Path) -> None:
        """Write its files and lines. Each line that it replaces must be there once."""
        shutil.copytree(
            self.folder, checkout, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        for name, lines in self.lines.items():
            text = (checkout / name).read_text()
            for old, new in lines.items():
                assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
                text = text.replace(old, new)
            (checkout / name).write_text(text)
        if self.migration:
            app, _, _ = self.migration.partition("/")
            name = Path(self.migration).stem.partition("_")[2]
            _run(checkout, sys.executable, "manage.py", "makemigrations", app, "--name", name)
            assert len(list((checkout / app / "migrations").glob(f"[0-9]*_{name}.py"))) == 1


def is_of_training(test: str) -> bool:
    """Does it need the training environment?"""
    return Path(test).name.startswith("test_torch_")


def copy_tree(checkout: Path) -> None:
    """With the compiled modules, which would take seconds to compile again."""
    for name in COPIED:
        shutil.copytree(ROOT / name, checkout / name, ignore=_UNCOPIED)
    for name in ("pyproject.toml", "CONTRIBUTING.md", "manage.py"):
        shutil.copy2(ROOT / name, checkout / name)


def run_tests(checkout: Path, *arguments: str, python: str | Path = sys.executable) -> None:
    """Run tests of the copy; what they printed is the error if they fail."""
    _run(checkout, python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments)


def _run(checkout: Path, *command: str | Path) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "DATA_DIR")}
    done = subprocess.run(
        command, cwd=checkout, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
