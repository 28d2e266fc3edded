"""Every import contract finds a breach.

Each gets one in a copy of the tree, then `lint-imports` runs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
OPTIONS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: list[dict[str, Any]] = OPTIONS["contracts"]
EXHAUSTIVE = [contract for contract in CONTRACTS if contract.get("exhaustive")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for package in OPTIONS["root_packages"]:
        shutil.copytree(
            REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def broken(tree: Path) -> set[str]:
    """Names of the contracts that `lint-imports` calls broken."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=tree, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    return set(re.findall(r"^(.+) BROKEN", done.stdout, flags=re.MULTILINE))


def module_of(layer: str, container: str) -> str:
    name = re.split(r"[|:]", layer)[0].strip(" ()")
    return f"{container}.{name}" if container else name


def breach(contract: Mapping[str, Any]) -> tuple[str, str]:
    """A module, and what it must not import."""
    if contract["type"] == "forbidden":
        return contract["source_modules"][0], contract["forbidden_modules"][0]
    container = contract.get("containers", [""])[0]
    return module_of(contract["layers"][-1], container), module_of(contract["layers"][0], container)


def file_of(tree: Path, module: str) -> Path:
    path = tree / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def test_an_import_against_each_contract_is_found(tree: Path) -> None:
    for contract in CONTRACTS:
        importer, imported = breach(contract)
        with file_of(tree, importer).open("a") as file:
            file.write(f"\nimport {imported}\n")
    assert broken(tree) == {contract["name"] for contract in CONTRACTS}


def test_a_module_outside_of_all_layers_is_found(tree: Path) -> None:
    for contract in EXHAUSTIVE:
        file_of(tree, contract["containers"][0]).with_name("stray.py").write_text("")
    assert broken(tree) == {contract["name"] for contract in EXHAUSTIVE}
    assert len(EXHAUSTIVE) >= 14
