"""`python -m trainer.run` with orders that cannot be carried out.

It leaves a readable reason and exit code 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.runs import REPOSITORY, Run
from trainer.recipes import DEFAULT_RECIPE, RECIPES


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"precision": "int3"}, "The parameter precision must be one of bfloat16"),
        ({"learning_rate": "fast"}, "The parameter learning_rate must be a number, not 'fast'."),
        ({"tuning": "qlora"}, "qlora needs a GPU"),
        ({"effective_batch_size": 9}, "make 4"),
        ({"precision": "float16", "sharding": "fsdp"}, "choose those, or ddp"),
    ],
)
def test_bad_parameters_are_named(run: Run, params: dict[str, Any], reason: str):
    run.params.update(params)
    assert run.write().finish() == 1
    assert reason in run.result["reason"]
    assert run.result["outcome"] == "error"
    assert run.events("result")[-1]["exit_code"] == 1


def test_an_unknown_recipe_is_named_with_those_that_are_known(run: Run):
    run.node = {"recipe": "magic"}
    assert run.write().finish() == 1
    assert run.result["reason"].startswith("This trainer knows the recipes sft")
    assert "not 'magic'" in run.result["reason"]


def test_a_node_that_lacks_a_package_of_the_recipe_declines(run: Run, monkeypatch: pytest.MonkeyPatch):
    needy = replace(DEFAULT_RECIPE, name="needy", entry="no.such.module", needs=("json", "no_such_package"))
    monkeypatch.setitem(RECIPES, "needy", needy)
    run.node = {"recipe": "needy"}
    result = run.write().train()
    assert result["outcome"] == "declined"
    assert result["reason"].startswith("The recipe needy needs no_such_package, which this node's")


def test_a_broken_spec_is_an_error_with_a_result(run: Run):
    run.write()
    (run.path / "spec.json").write_text(json.dumps({"spec": {"job": 3}, "local": {}}))
    assert run.finish() == 1
    assert "spec.job must be a text" in run.result["reason"]


def test_several_folders_are_trained_in_turn_whatever_becomes_of_the_first(tmp_path: Path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "spec.json").write_text("{}")
    done = subprocess.run([sys.executable, "-m", "trainer.run", *map(str, folders)], cwd=REPOSITORY)
    assert done.returncode == 1
    for folder in folders:
        assert json.loads((folder / "result.json").read_text())["outcome"] == "error"


NO_ROOM = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
    "sys.argv = ['trainer.run', sys.argv[1]]; runpy.run_module('trainer.run', run_name='__main__')"
)


def test_a_disk_without_room_for_a_result_is_told_by_the_exit_code(run: Run):
    run.params["learning_rate"] = "fast"
    assert run.write().finish("-c", NO_ROOM) == 74
    assert not (run.path / "result.json").exists()


def test_a_missing_run_directory_is_a_usage_error():
    done = subprocess.run(
        [sys.executable, "-m", "trainer.run", "nowhere"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "usage" in done.stderr
