"""What a GPU node is told to install is there and enough for every method."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("said_in", ["Dockerfile", "docs/nodes.md"])
def test_a_gpu_node_is_told_to_install_what_qlora_needs(said_in: str):
    named = set(re.findall(r"-r (requirements/\w+\.lock)", (REPOSITORY / said_in).read_text()))
    assert named >= {"requirements/train.lock", "requirements/gpu.lock"}
    pinned = "".join((REPOSITORY / name).read_text() for name in named)
    for package in ("transformers", "peft", "accelerate", "nvidia-ml-py", "bitsandbytes"):
        assert re.search(rf"^{package}==[\d.]+ .*\\\n +--hash=sha256:", pinned, re.MULTILINE), package
