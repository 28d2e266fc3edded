"""The wheels of this tree: what nodes install, and what people do.

`python3 run.py wheels` builds both into `dist/`; the portal offers them for download.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NODE, CLIENT = "trainer", "client"  # folders that hold a project each
PROJECTS = (NODE, CLIENT)
_PACKED = ("*.py", "py.typed", "pyproject.toml", "LICENSE", "requirements*.in")
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
_EPOCH = "315532800"  # 1980: the first moment that a zip file can name, so that each build has the same bytes


class BuildFailed(Exception):
    """The wheel cannot be built; the message says why and what to do."""


def wheel(project: str, packages: Path) -> Path:
    """Return the wheel of a project's sources as they are.

    packages: where wheels are kept, each in a folder that is named for its sources; it is built once
    for all processes that share the folder. Raises BuildFailed.
    """
    folder = packages / _digest(project)
    if built := next(folder.glob("*.whl"), None):
        return built
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = _build(project, Path(scratch))
        # Concurrent builds replace it by the same bytes.
        return made.replace(folder / made.name)


def sha256_of(file: Path) -> str:
    """Return the digest that pip checks."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _sources(project: str) -> Iterator[Path]:
    """What goes into the build, without what earlier builds by hand left behind."""
    folder = ROOT / project
    found = {path for pattern in _PACKED for path in folder.rglob(pattern)}
    yield from sorted(path for path in found if path.relative_to(folder).parts[0] != "build")


def _digest(project: str) -> str:
    digest = hashlib.sha256(f"{_BUILD}{_EPOCH}".encode())
    for path in _sources(project):
        digest.update(f"{path.relative_to(ROOT)} {sha256_of(path)}\n".encode())
    return digest.hexdigest()[:16]


def _build(project: str, scratch: Path) -> Path:
    """Build from a copy with fixed modes; the folder of the sources may be read-only."""
    for path in _sources(project):
        copy = scratch / "source" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod(0o644)
    command = [sys.executable, "-c", _BUILD, str(scratch)]
    environment = {"PATH": os.defpath, "SOURCE_DATE_EPOCH": _EPOCH}
    try:
        subprocess.run(
            command,
            cwd=scratch / "source" / project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise BuildFailed(
            f"The wheel of {project}/ cannot be built ({why}): install requirements/build.lock here."
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildFailed(f"The wheel of {project}/ cannot be built: {error}") from error
    return next(scratch.glob("*.whl"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="run.py wheels", description="Build the wheels of this release.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="where to (dist)")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for project in PROJECTS:
            try:
                built = wheel(project, Path(scratch))
            except BuildFailed as failed:
                sys.exit(str(failed))
            print(built.replace(folder / built.name))


if __name__ == "__main__":
    main()
