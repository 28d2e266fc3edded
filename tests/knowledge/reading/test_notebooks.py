"""Notebooks: lines of the file itself, and no evidence in what cells printed."""

from __future__ import annotations

import json

from knowledge.reading.reader import read
from knowledge.reading.syntax import notebooks
from knowledge.reading.types import Location, Tree
from tests.harness import hostile

CELLS = [
    {"cell_type": "markdown", "source": ["learning_rate = 1\n"]},
    {"cell_type": "code", "source": ["!pip install x\n", "lr = 3e-4\n", "epochs = 2"],
     "outputs": [{"text": ["seed = 99"]}]},
    {"cell_type": "code", "source": ["%%bash\n", "accelerate launch --num_processes 2 t.py --seed 5"]},
]  # fmt: skip


def test_values_stand_on_the_lines_of_the_file() -> None:
    text = json.dumps({"cells": CELLS}, indent=1)
    found = read(Tree({"n.ipynb": text}))
    assert {name: value.value for name, value in found.values.items()} == {
        "learning_rate": 3e-4,
        "epochs": 2,
        "number_gpus": 2,
        "seed": 5,
    }
    lines = text.splitlines()
    for name, part in {"learning_rate": "lr = 3e-4", "seed": "--seed 5"}.items():
        place = found.values[name].evidence[0]
        assert place == Location("n.ipynb", place.line)
        assert part in lines[place.line - 1]


def test_what_is_no_notebook_is_named() -> None:
    assert set(read(Tree({"n.ipynb": "[1, 2]"})).unreadable) == {"n.ipynb"}


def test_sources_that_do_not_stand_in_the_file_as_they_are_cost_little() -> None:
    """Letters in another spelling of JSON are found on no line, and each was sought on thousands."""
    cells = [{"cell_type": "code", "source": [f"é = {at}\n" for at in range(40_000)]}]
    text = json.dumps({"cells": cells}, indent=1).replace("\\u00e9", "\\u00E9")
    with hostile.bounded(seconds=20):
        assert notebooks.parse(text).python.count("é") == 40_000
