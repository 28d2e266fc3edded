"""Clients that are generated from the schema of a live portal, without a warning, and typed programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.stack import Stack
from tests.stack.documented import script
from tests.stack.environments import binaries, modules

STORIES = Path(__file__).with_name("generated_clients")
ADAPTER = "output/adapter_model.safetensors"
pytestmark = pytest.mark.slow


def generated(stack: Stack, language: str, commands: Path, folder: Path) -> None:
    """Run the lines of docs/api.md that make a client, with the generator that is installed already."""
    lines = re.sub(r"^(uvx|npx) ", "", script("docs/api.md", language), flags=re.MULTILINE)
    api = 'api() { curl -sS -H "Authorization: Bearer $TOKEN" "$@"; }\n'
    env = {"PORTAL": stack.url, "TOKEN": stack.token, "PATH": f"{commands}:{os.environ['PATH']}"}
    said(["bash", "-euo", "pipefail", "-c", api + lines], folder, {"HOME": str(folder), **env})


def said(command: list[str | Path], folder: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "warning" not in done.stdout.lower(), done.stdout[-3000:]
    return done.stdout


def test_a_typed_python_program_trains_with_a_generated_client(judged: Stack, tmp_path: Path) -> None:
    commands = binaries("generated")
    generated(judged, "python", commands, tmp_path)
    package = next(tmp_path.glob("*/foretune_client"))
    shutil.move(package, tmp_path)
    shutil.copy(STORIES / "story.py", tmp_path)
    said([commands / "mypy", "--strict", "foretune_client", "story.py"], tmp_path)
    lines = (judged.root / "corpus.jsonl").read_text().splitlines(keepends=True)
    files = [f"rows-{number}.jsonl" for number in range(3)]
    for number, name in enumerate(files):
        (tmp_path / name).write_text("".join(lines[number : 30 + number]))
    job_id, sha256 = said(
        [commands / "python", "story.py", judged.url, judged.token, *files], tmp_path
    ).split()
    kept = judged.client.get(f"jobs/{job_id}/artifacts/")["data"]
    assert [artifact["sha256"] for artifact in kept if artifact["path"] == ADAPTER] == [sha256]


def test_a_typed_program_compiles_with_generated_types(judged: Stack, tmp_path: Path) -> None:
    folder = modules("generated-npm")
    generated(judged, "typescript", folder / ".bin", tmp_path)
    (tmp_path / "node_modules").symlink_to(folder)
    shutil.copy(STORIES / "story.ts", tmp_path)
    options = ["--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"]
    said([folder / ".bin" / "tsc", "--noEmit", "--strict", *options, "story.ts"], tmp_path)
