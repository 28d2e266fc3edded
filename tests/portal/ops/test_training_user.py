"""A portal that root starts lets an unprivileged user train."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from portal.ops.launch import processes


def closed_environment(folder: Path) -> Path:
    """An environment as a strict umask leaves it."""
    (folder / "lib").mkdir(parents=True)
    (folder / "bin").mkdir()
    for path, mode in ((folder / "lib" / "module.py", 0o600), (folder / "bin" / "tool", 0o700)):
        path.touch()
        path.chmod(mode)
    (folder / "bin" / "python").symlink_to("/nowhere/python")
    for inner in (folder / "lib", folder / "bin", folder):
        inner.chmod(0o700)
    return folder


def test_what_a_strict_umask_closed_is_opened_for_reading_alone(tmp_path: Path) -> None:
    folder = closed_environment(tmp_path / "environment")
    processes.open_to_all(folder)
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}
    del modes["python"]
    assert modes == {
        "environment": 0o705, "lib": 0o705, "bin": 0o705, "module.py": 0o604, "tool": 0o705,
    }  # fmt: skip


@pytest.mark.parametrize(("user", "opened"), [(0, True), (1000, False)])
def test_only_root_opens_the_environment_of_its_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, opened: bool
) -> None:
    folder = closed_environment(tmp_path / "environment")
    (tmp_path / "trainer").mkdir()
    monkeypatch.setattr(processes, "REPOSITORY", tmp_path)
    monkeypatch.setattr(processes, "TRAINING_PYTHON", folder / "bin" / "python")
    monkeypatch.setattr(processes.os, "geteuid", lambda: user)
    command = processes.agent("http://127.0.0.1:1", tmp_path / "node", tmp_path / "join").command
    assert "--user=nobody,root" in command
    assert bool(folder.stat().st_mode & stat.S_IXOTH) is opened
