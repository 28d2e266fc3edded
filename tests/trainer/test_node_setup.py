"""The packages that a GPU node shall install are there, and enough for every tuning."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_image_of_a_gpu_node_installs_what_qlora_needs():
    named = set(re.findall(r"-r (requirements/\w+\.lock)", (REPOSITORY / "Dockerfile").read_text()))
    assert named >= {"requirements/train.lock", "requirements/gpu.lock"}
    pinned = "".join((REPOSITORY / name).read_text() for name in named)
    for package in ("transformers", "peft", "accelerate", "nvidia-ml-py", "bitsandbytes"):
        assert re.search(rf"^{package}==[\d.]+ .*\\\n +--hash=sha256:", pinned, re.MULTILINE), package
