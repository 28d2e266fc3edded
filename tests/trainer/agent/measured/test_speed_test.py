"""A node's speed tests.

They measure what a training did, are never in the way of work, and run again when hardware or software is
another.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.agent.fakes.fake_portal import ONE_SLOT
from tests.trainer.agent.measured.idle_nodes import node_folder, process_executor, workshop
from trainer.agent import speed_test
from trainer.agent.executors import local
from trainer.agent.executors.base import Launch
from trainer.agent.node.measured import speed_tests
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import GpuFacts, NodeFacts
from trainer.self_tests import SpeedTest

# Trainings that take steps until they are told to stop, or as their mode says.
TRAINER = """
import json, os, pathlib, signal, sys, time
mode, *runs = sys.argv[1:]
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
for run in map(pathlib.Path, runs):
    spec = json.loads(run.joinpath("spec.json").read_text())["spec"]
    rows = run.joinpath("inputs/train.jsonl").read_text().splitlines()
    assert all(len(json.loads(row)["completion"]) > spec["params"]["tokens_per_sample"] for row in rows)
    def tell(**event):
        with open(run / "events.jsonl", "a") as file: file.write(json.dumps(event) + "\\n")
    def end(**result):
        (run / "result.json").write_text(json.dumps(result))
    with open(run / "../../../starts", "a") as file: file.write(mode + "\\n")
    if mode == "broken": end(outcome="error", reason="no kernel for this GPU"); continue
    tell(kind="start", startup_s=0.2)
    step = 0
    while not stopped and step < 1000:
        stuck = mode == "slow" or mode == "late" and run.name == "2"
        if not stuck: step += 1; tell(kind="step", step=step)
        time.sleep(0.01)
    stopped.clear()
    figures = dict(tokens_per_s=4000.0, startup_s=0.2, peak_memory_bytes=10**8)
    end(outcome="stopped", **(figures if mode != "untold" else {}))
"""
SHAPES = len(speed_tests.SHAPES)
SLOT = GpuFacts(index=0, model="cpu", memory_bytes=2**30)
FACTS = NodeFacts(
    hostname="box",
    cores=3,
    memory_bytes=2**31,
    gpus=(SLOT, replace(SLOT, index=1)),
    software={"torch": "2.13"},
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_test, "TRAIN_S", 0.05)


@pytest.fixture
def folder(tmp_path: Path) -> NodeFolder:
    return node_folder(tmp_path)


def measured(folder: NodeFolder, mode: str = "steady", facts: NodeFacts = FACTS) -> tuple[SpeedTest, ...]:
    prepared = workshop(folder, facts, (sys.executable, "-c", TRAINER, mode))
    return speed_test.run_due(facts, prepared, process_executor(folder))


def starts(folder: NodeFolder) -> int:
    file = folder.root / "starts"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_one_slot_of_each_model_is_tested_once(folder: NodeFolder) -> None:
    (test,) = measured(folder)
    assert (test.gpu_model, test.startup_s, test.problem) == ("cpu", 0.2, "")
    assert [(run.tokens_per_s, run.peak_memory_bytes) for run in test.runs] == [(4000.0, 10**8)] * SHAPES
    assert measured(folder) == (test,), "told again, not measured again"
    assert starts(folder) == SHAPES
    assert list(folder.runs.iterdir()) == [], "nothing is left of it"


@pytest.mark.parametrize(
    "changed", [{"software": {"torch": "2.14"}}, {"cores": 5}, {"gpus": (replace(SLOT, memory_bytes=2**31),)}]
)
def test_other_hardware_or_software_is_tested_anew(folder: NodeFolder, changed: dict[str, object]) -> None:
    (before,) = measured(folder)
    (after,) = measured(folder, facts=replace(FACTS, **changed))
    assert starts(folder) == 2 * SHAPES
    assert after.test != before.test


def test_a_node_with_work_is_never_tested(folder: NodeFolder) -> None:
    claim = folder.spool / "claim-1"
    claim.mkdir()
    (claim / "claim.json").write_text("{}")
    assert measured(folder) == ()
    assert starts(folder) == 0


@pytest.mark.parametrize(
    ("mode", "problem"),
    [("broken", "no kernel for this GPU"), ("untold", "no figures"), ("slow", "longer than")],
)
def test_a_test_that_fails_says_why_and_is_tried_at_the_next_start(
    folder: NodeFolder, monkeypatch: pytest.MonkeyPatch, mode: str, problem: str
) -> None:
    monkeypatch.setattr(speed_test, "LONGEST_S", 1.0)
    (test,) = measured(folder, mode)
    assert problem in test.problem
    assert test.runs == ()
    monkeypatch.undo()
    monkeypatch.setattr(speed_test, "TRAIN_S", 0.05)
    (again,) = measured(folder)
    assert not again.problem


def test_what_was_measured_in_time_counts(folder: NodeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_test, "LONGEST_S", 3.0)
    (test,) = measured(folder, "late")
    assert not test.problem
    assert len(test.runs) == SHAPES - 1


def test_what_a_killed_agent_left_is_ended_first(folder: NodeFolder) -> None:
    run, executor = folder.runs / f"{speed_test.PREFIX}old", process_executor(folder)
    run.mkdir()
    left = Launch(
        claim=run.name, command=["sleep", "60"], run=run, environment={"PATH": os.defpath}, resources=ONE_SLOT
    )
    handle = executor.submit(left, executor.begin(run.name))
    (test,) = measured(folder)
    assert not test.problem
    assert executor.poll(handle) is not None
    assert not run.exists()


def test_a_command_that_cannot_be_started_is_a_problem_of_the_test_alone(folder: NodeFolder) -> None:
    prepared = workshop(folder, FACTS, ("/nowhere/python",))
    (test,) = speed_test.run_due(FACTS, prepared, process_executor(folder))
    assert "/nowhere/python" in test.problem


def test_a_gpu_that_somebody_else_uses_is_not_tested(
    folder: NodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "busy", lambda gpus: f"GPU {gpus[0].index} is in use")
    gpus = (GpuFacts(index=0, model="Tesla T4", memory_bytes=2**34),)
    (test,) = measured(folder, facts=replace(FACTS, gpus=gpus))
    assert test.problem == "GPU 0 is in use"
    assert starts(folder) == 0


def test_what_cannot_be_read_counts_as_never_tested(folder: NodeFolder) -> None:
    folder.speed_tests_file.write_text('{"cpu": {"fingerprint": "x", "test": {"test": "../x"}}, "T4": 3}')
    assert speed_tests.known(folder, FACTS.gpus) == ()
    assert speed_tests.due(folder, FACTS) == [SLOT]
