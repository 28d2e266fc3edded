"""Links between GPUs: the pairs that are measured, and a program that does it well, badly or for ever."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.agent.measured.idle_nodes import node_folder, process_executor, workshop
from trainer.agent import link_test
from trainer.agent.executors import local
from trainer.agent.node.measured import link_tests
from trainer.agent.node.measured.link_tests import pairs
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import DeclaredSite, GpuFacts, NodeFacts
from trainer.self_tests import LinkTest

PROGRAM = """
import json, pathlib, sys, time
run = pathlib.Path(sys.argv[-1])
order = json.loads((run / "pairs.json").read_text())
with (run.parent.parent / "starts").open("a") as file: file.write("x\\n")
mode = (run.parent.parent / "mode").read_text()
if mode == "slow": time.sleep(60)
if mode == "broken": sys.exit("no peer access between these GPUs")
figures = [dict(first=a, second=b, bytes_per_s=1e10, latency_s=1e-5) for a, b in order["pairs"]]
if mode == "strange": figures[0]["second"] = 7
(run / "links.json").write_text(json.dumps({"links": figures}))
"""
SLOT = GpuFacts(index=0, model="cpu", memory_bytes=2**30)
# Two sockets of two slots each; the first two share a switch.
PLACES = ((0, 0), (0, 0), (1, 1), (1, 2))
SLOTS = tuple(
    replace(SLOT, index=index, declared=DeclaredSite(socket=socket, numa=socket, switch=switch))
    for index, (socket, switch) in enumerate(PLACES)
)
FACTS = NodeFacts(hostname="box", cores=5, memory_bytes=2**33, gpus=SLOTS, software={"torch": "2.13"})
MEASURED = tuple(
    LinkTest(first=first, second=second, bytes_per_s=1e10, latency_s=1e-5)
    for first, second in ((0, 1), (0, 2), (2, 3))
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeFolder:
    monkeypatch.setattr(link_test, "PROGRAM", ("-c", PROGRAM))
    return node_folder(tmp_path)


def measured(folder: NodeFolder, mode: str = "well", facts: NodeFacts = FACTS) -> NodeFacts:
    (folder.root / "mode").write_text(mode)
    return link_test.with_links(facts, workshop(folder, facts), process_executor(folder))


def starts(folder: NodeFolder) -> int:
    file = folder.root / "starts"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_one_pair_stands_for_all_that_relate_alike() -> None:
    assert pairs(SLOTS) == [(0, 1), (0, 2), (2, 3)]
    linked = [
        GpuFacts(
            index=index,
            model="A100",
            memory_bytes=1,
            links={str(other): "nvlink" for other in range(4) if other != index},
            pci={str(other): "pix" if other // 2 == index // 2 else "sys" for other in range(4)},
            numa=index // 2,
        )
        for index in range(4)
    ]
    assert pairs(linked) == [(0, 1), (0, 2)]


def test_nothing_is_measured_where_nobody_says_how_gpus_relate(folder: NodeFolder) -> None:
    unknown = replace(FACTS, gpus=tuple(replace(slot, declared=None) for slot in SLOTS))
    assert pairs(unknown.gpus) == []
    assert measured(folder, facts=unknown) == unknown
    assert pairs([replace(SLOTS[0], model="A100"), replace(SLOTS[1], model="L4")]) == []
    assert starts(folder) == 0


def test_links_are_measured_once_and_told_from_then_on(folder: NodeFolder) -> None:
    assert measured(folder).link_tests == MEASURED
    assert measured(folder).link_tests == MEASURED
    assert starts(folder) == 1
    assert link_tests.known(folder, SLOTS, FACTS.software).tests == MEASURED, "what discovery tells later"
    assert list(folder.runs.iterdir()) == [], "nothing is left of it"


def test_figures_name_gpus_and_not_the_processes_that_measured_them(folder: NodeFolder) -> None:
    mixed = replace(
        FACTS, gpus=(SLOTS[0], replace(SLOTS[1], model="b"), SLOTS[2], replace(SLOTS[3], model="b"))
    )
    found = measured(folder, facts=mixed).link_tests
    assert {(test.first, test.second) for test in found} == {(0, 2), (1, 3)}
    alone = replace(FACTS, gpus=(SLOTS[0], *(replace(slot, model="b") for slot in SLOTS[1:3])))
    assert [(test.first, test.second) for test in measured(folder, facts=alone).link_tests] == [(1, 2)]


@pytest.mark.parametrize("changed", [{"software": {"torch": "2.14"}}, {"gpus": SLOTS[:3]}])
def test_another_stack_is_measured_anew(folder: NodeFolder, changed: dict[str, object]) -> None:
    measured(folder)
    other = replace(FACTS, **changed)
    assert link_tests.known(folder, other.gpus, other.software).tests == ()
    assert measured(folder, facts=other).link_tests
    assert starts(folder) == 2


@pytest.mark.parametrize(
    ("mode", "problem"),
    [
        ("broken", "no peer access between these GPUs"),
        ("strange", "strange figures"),
        ("slow", "longer than 2 s"),
    ],
)
def test_a_failure_says_why_and_is_tried_again_at_the_next_start(
    folder: NodeFolder, mode: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_test, "LONGEST_S", 2.0 if mode == "slow" else 60.0)
    failed = measured(folder, mode)
    assert failed.link_tests == ()
    assert problem in failed.link_problem
    assert link_tests.known(folder, SLOTS, FACTS.software).problem == failed.link_problem
    monkeypatch.setattr(link_test, "LONGEST_S", 60.0)
    again = measured(folder)
    assert (again.link_tests, again.link_problem) == (MEASURED, "")
    assert list(folder.runs.iterdir()) == []


def test_a_node_with_work_is_never_measured(folder: NodeFolder) -> None:
    claim = folder.spool / "claim-1"
    claim.mkdir()
    (claim / "claim.json").write_text("{}")
    assert measured(folder) == FACTS
    assert starts(folder) == 0


def test_gpus_that_somebody_uses_are_not_measured(
    folder: NodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "busy", lambda gpus: f"GPU {gpus[0].index} is in use")
    gpus = tuple(replace(slot, model="T4", uuid=f"GPU-{slot.index}") for slot in SLOTS)
    assert measured(folder, facts=replace(FACTS, gpus=gpus)).link_problem == "GPU 0 is in use"


@pytest.mark.parametrize("text", ['{"fingerprint": 3}', "[]", '{"tests": {}, "problem": null}'])
def test_a_spoilt_file_counts_as_never_measured(folder: NodeFolder, text: str) -> None:
    folder.link_tests_file.write_text(text)
    assert link_tests.known(folder, SLOTS, FACTS.software).tests == ()
