"""Tests of the trainer.

Files named test_torch_* need the training environment (.venv-train), test_cuda.py an NVIDIA GPU
as well:

.venv-train/bin/python -m pytest -m torch -c tests/trainer/pytest.ini tests/trainer
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.trainer.runs import Run

collect_ignore_glob = [] if find_spec("torch") else ["**/test_torch_*.py", "test_torch_*.py"]
if not find_spec("torch") or not Path("/dev/nvidiactl").exists():
    collect_ignore_glob += ["**/test_cuda.py", "test_cuda.py"]


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builtin models are made once for all tests."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def run(tmp_path: Path, models_dir: Path) -> Run:
    """A run directory with a tiny training in it, not started."""
    return Run(tmp_path / "run", models_dir)
