"""Pasted texts: each is read as what it looks like."""

from __future__ import annotations

import pytest

from knowledge.reading.manifest import from_upload
from knowledge.reading.reader import read
from knowledge.reading.syntax.kind_of_text import name_by_text
from knowledge.reading.types import Tree
from tests.harness import hostile

TEXTS = {
    "sh": "#!/bin/bash\nLR=3e-5\npython -c 'import torch'\npython train.py --learning_rate $LR --lora_r 8\n",
    "sh without its first line": "export LR=3e-5\ntorchrun train.py --learning_rate $LR \\\n  --lora_r 8\n",
    "sh of one line": "accelerate launch train.py --learning_rate 3e-5 --lora_r 8",
    "bat": "@echo off\nset LR=3e-5\npython train.py ^\n --learning_rate %LR% --lora_r 8\n",
    "bat without its first line": 'set "LR=3e-5"\npython train.py --learning_rate %LR% --lora_r 8\n',
    "py": "from peft import LoraConfig\nlearning_rate = 3e-5\nlora = LoraConfig(r=8)\n",
    "py that starts itself": "#!/usr/bin/env python3\nimport peft\nlearning_rate = 3e-5\nlora_r = 8\n",
    "json": '{"learning_rate": 3e-5,\n "lora_r": 8}\n',
    "toml": 'title = "mine"\n[train]\nlearning_rate = 3e-5\nlora_r = 8\n',
    "yaml": "adapter: lora\nlearning_rate: 3e-5\nlora_r: 8\ncommand: see python train.py\n",
    "yaml with code in it": "learning_rate: 3e-5\nlora_r: 8\nseed: 1\nhook: |\n  import os\n  x = 1\n",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_pasted_text_is_read_as_what_it_looks_like(kind: str) -> None:
    name = name_by_text(TEXTS[kind])
    assert name == f"script.{kind.partition(' ')[0]}"
    found = read(Tree(from_upload(name, TEXTS[kind].encode()).files, None)).values
    assert {field: found[field].value for field in ("learning_rate", "lora_r")} == {
        "learning_rate": 3e-5, "lora_r": 8,
    }  # fmt: skip


@pytest.mark.parametrize("piece", [" ", "a=", "[", "from a ", "%~", "\\", "^", "set ", "python "])
def test_hostile_texts_cost_little(piece: str) -> None:
    with hostile.bounded(seconds=2):
        name_by_text(piece * (200_000 // len(piece)))
