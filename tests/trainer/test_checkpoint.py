"""Invariant I14: only a complete checkpoint is resumed.

It must have been written completely and have matching digests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.runs import REPOSITORY
from trainer.checkpoint import BadCheckpoint, newest, save, verify

# kills itself at the moment when the N-th call of a step of saving is made
KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from trainer import checkpoint
root, function, call = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
owner, name = (Path, function[5:]) if function.startswith("Path.") else (checkpoint, function)
real, calls = getattr(owner, name), []
def dying(*arguments, **options):
    calls.append(1)
    if len(calls) == call:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)
setattr(owner, name, dying)
checkpoint.save(root, 2, lambda folder: [(folder / part).write_bytes(b"new" * 1000) for part in "ab"])
"""


def write(content: bytes):
    def into(folder: Path) -> None:
        (folder / "weights").write_bytes(content)
        (folder / "state.json").write_text("{}")

    return into


def test_a_saved_checkpoint_verifies_and_lists_all_its_files(tmp_path: Path):
    saved = save(tmp_path, 3, write(b"abc"))
    assert verify(tmp_path / "step-3") == saved
    assert {file.path for file in saved.files} == {"weights", "state.json", "manifest.json"}


def test_only_the_newest_two_are_kept(tmp_path: Path):
    for step in (5, 9, 10, 11):
        save(tmp_path, step, write(b"x"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-10", "step-11"]


@pytest.mark.parametrize("damage", ["changed", "shortened", "missing", "no manifest", "broken manifest"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path, damage: str):
    save(tmp_path, 1, write(b"good"))
    folder = save(tmp_path, 2, write(b"good")).folder
    match damage:
        case "changed":
            (folder / "weights").write_bytes(b"gOOd")
        case "shortened":
            (folder / "weights").write_bytes(b"go")
        case "missing":
            (folder / "weights").unlink()
        case "no manifest":
            (folder / "manifest.json").unlink()
        case _:
            (folder / "manifest.json").write_text('{"step": 2, "files": [{"path": "../../x"}]}')
    with pytest.raises(BadCheckpoint, match="step-2"):
        verify(folder)
    found = newest(tmp_path)
    assert found is not None
    assert found.step == 1


def test_a_failed_write_leaves_the_last_checkpoint_and_no_rubbish(tmp_path: Path):
    save(tmp_path, 1, write(b"good"))

    def disk_full(folder: Path) -> None:
        (folder / "weights").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        save(tmp_path, 2, disk_full)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("Path.mkdir", 2),
        ("Path.write_bytes", 1),
        ("Path.write_bytes", 2),
        ("describe", 1),
        ("_write_synced", 1),
        ("_sync", 2),
        ("_sync", 4),
        ("Path.rename", 1),
        ("_sync", 6),
        ("_remove", 3),
    ],
)
def test_a_kill_at_any_moment_leaves_a_complete_checkpoint(tmp_path: Path, function: str, call: int):
    save(tmp_path, 1, write(b"old"))
    writer = [sys.executable, "-c", KILLED_WRITER, str(tmp_path), function, str(call)]
    code = subprocess.run(
        writer, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": "."}, check=False
    ).returncode
    assert code == -signal.SIGKILL
    found = newest(tmp_path)
    assert found is not None
    assert found.step in (1, 2)
    save(tmp_path, 3, write(b"next"))
    assert not list(tmp_path.glob(".writing-*"))
