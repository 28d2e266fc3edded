"""The labelled scripts: our scores are those of the script beside the labels."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from knowledge.reading import evaluation
from knowledge.reading.reader import read

SETS = Path(__file__).parents[4] / "shared" / "data" / "scripts"
needed = pytest.mark.skipif(not SETS.is_dir(), reason="the labelled scripts of ../shared are missing")


@needed
@pytest.mark.shared_data
def test_the_counts_are_those_of_the_script_beside_the_labels() -> None:
    spec = importlib.util.spec_from_file_location("score", SETS / "score.py")
    assert spec is not None
    assert spec.loader is not None
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    ours, theirs = Counter[str](), Counter[str]()
    for label, tree in evaluation.labelled(SETS / "develop"):
        reading = read(tree)
        ours.update(evaluation.scored(label, reading))
        theirs.update(score.tree(label, _answer(reading)))
    for name in ("stated", "filled", "right", "found", "sure", "sure and wrong"):
        assert ours[name] == theirs[name], name
    shares = evaluation.shares(ours)
    assert (shares["precision"] or 0) >= 0.97
    assert (shares["recall"] or 0) >= 0.8


def _answer(reading: Any) -> dict[str, Any]:
    fields = {
        name: {"value": one.value, "confidence": one.confidence}
        for name, one in reading.values.items()
        if name not in evaluation.UNLABELLED
    }
    return {"fields": fields}


def test_what_labels_call_method_is_our_tuning(tmp_path: Path) -> None:
    tree = tmp_path / "one" / "tree"
    tree.mkdir(parents=True)
    (tree / "c.yaml").write_text("peft_method: lora\n")
    label = {
        "source": {"own": True}, "command": "python t.py c.yaml", "files": ["c.yaml"], "not_stated": [],
        "fields": {"method": {"value": "lora"}}, "derived": {"method": {"value": "qlora"}},
        "contradictions": [
            {"field": "method+quantization", "values": [{"field": "method", "value": "full"}, {"value": "x"}]}
        ],
    }  # fmt: skip
    (tree.parent / "label.json").write_text(json.dumps(label))
    [(found, files)] = evaluation.labelled(tmp_path)
    assert (found["fields"], found["derived"]) == (
        {"tuning": {"value": "lora"}}, {"tuning": {"value": "qlora"}}
    )  # fmt: skip
    assert found["contradictions"] == [
        {"field": "tuning+quantization", "values": [{"field": "tuning", "value": "full"}, {"value": "x"}]}
    ]
    assert evaluation.scored({**found, "contradictions": []}, read(files))["found"] == 1


def test_the_command_writes_the_figures(tmp_path: Path) -> None:
    tree = tmp_path / "set" / "one" / "tree"
    tree.mkdir(parents=True)
    (tree / "c.yaml").write_text("epochs: 3\nseed: 1\n")
    label = {
        "id": "one",
        "source": {"own": True},
        "command": "python t.py c.yaml",
        "files": ["c.yaml"],
        "fields": {"epochs": {"value": 3, "file": "c.yaml", "line": 1}},
        "not_stated": ["seed"],
        "derived": {},
        "contradictions": [],
    }
    (tree.parent / "label.json").write_text(json.dumps(label))
    call_command("evaluate_reader", set=str(tmp_path / "set"), json=str(tmp_path / "out.json"))
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["trees"], found["precision"], found["recall"], found["wrong_confident"]) == (
        1,
        0.5,
        1.0,
        0.5,
    )
    assert found["by_source"]["own"]["trees"] == 1
    with pytest.raises(CommandError, match=r"label\.json"):
        call_command("evaluate_reader", set=str(tmp_path / "nothing"), json=str(tmp_path / "out.json"))
