"""Where GPUs sit: a driver and a kernel as far as files stand in for them, and declarations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.agent.test_gpus import A100, HOST, SetMachine, machine
from trainer.agent.errors import SetupError
from trainer.agent.node import topology
from trainer.agent.node.discovery import discover
from trainer.agent.node.gpus import find_gpus
from trainer.agent.node.topology import Attachment, attachment
from trainer.agent.settings import read_settings
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import DeclaredSite, to_json
from trainer.protocol_parsing import parse_facts

__all__ = ["machine"]
SITE = {"socket": 0, "numa": 0, "switch": 0}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree like /sys of two sockets, each with one NUMA node, and a memory-only node."""
    root = tmp_path / "sys"
    for bus, numa in (("0000:3b:00.0", 0), ("0000:3c:00.0", 0), ("0001:86:00.0", 1), ("0000:d8:00.0", -1)):
        _write(root / f"bus/pci/devices/{bus}/numa_node", numa)
    for numa, cores in ((0, "0-3,8-11"), (1, "4-7"), (2, "")):
        _write(root / f"devices/system/node/node{numa}/cpulist", cores)
    for core in range(12):
        _write(root / f"devices/system/cpu/cpu{core}/topology/physical_package_id", int(3 < core < 8))
    monkeypatch.setattr(topology, "SYS", root)
    return root


def _write(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(f"{value}\n")


def test_the_kernel_says_what_a_gpu_is_attached_to(kernel: Path) -> None:
    assert attachment("00000000:3B:00.0") == Attachment(0, 0)
    assert attachment("00000001:86:00.0") == Attachment(1, 1)
    assert attachment("00000000:D8:00.0") == Attachment()  # -1 is unknown
    assert attachment("00000000:FF:00.0") == Attachment()
    _write(kernel / "bus/pci/devices/0000:aa:00.0/numa_node", 2)
    assert attachment("00000000:AA:00.0") == Attachment(2)  # memory without cores


def test_links_do_not_hide_the_bus(machine: SetMachine, kernel: Path) -> None:
    switched = [{**A100, "switch": gpu // 2, "bus": bus} for gpu, bus in enumerate(("00000000:3B:00.0",
                "00000000:3C:00.0", "00000001:86:00.0"))]  # fmt: skip
    machine(*switched)
    found = find_gpus(HOST)
    assert found[0].links == {"1": "nvlink", "2": "nvlink"}
    assert found[0].pci == {"1": "pix", "2": "node"}
    assert [(gpu.numa, gpu.socket) for gpu in found] == [(0, 0), (0, 0), (1, 1)]


def declare(tmp_path: Path, facts: Any) -> Path:
    file = tmp_path / "topology.json"
    file.write_text(facts if isinstance(facts, str) else json.dumps(facts))
    return file


def test_slots_are_declared_in_their_order(tmp_path: Path, node_dir: Path) -> None:
    file = declare(tmp_path, [SITE, {**SITE, "switch": 1, "nvlink": 3}])
    given = ["--portal", "https://portal.test", "--slots", "2", "--topology", str(file)]
    settings = read_settings(given)
    folder = NodeFolder(node_dir)
    folder.prepare()
    facts = discover(folder, settings.slots, settings.topology)
    assert [gpu.declared for gpu in facts.gpus] == [
        DeclaredSite(socket=0, numa=0, switch=0),
        DeclaredSite(socket=0, numa=0, switch=1, nvlink=3),
    ]
    assert parse_facts(to_json(facts)) == facts


def test_gpus_are_declared_by_uuid_whichever_are_offered(
    machine: SetMachine, tmp_path: Path, node_dir: Path
) -> None:
    file = declare(tmp_path, [{**SITE, "numa": number, "uuid": f"GPU-000{number}"} for number in range(3)])
    machine(A100, {**A100, "mig": 1}, A100)
    folder = NodeFolder(node_dir)
    folder.prepare()
    found = discover(folder, topology=file).gpus
    assert [gpu.declared.numa for gpu in found if gpu.declared] == [0, 2]


@pytest.mark.parametrize(
    ("facts", "complaint"),
    [
        ("[", "cannot be read"),
        ('"\\ud800', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ({"0": SITE}, "must be a JSON list"),
        ([SITE], "one entry for each GPU or slot that is offered, 2; it has 1"),
        ([SITE, 7], r"entry 1 must be an object"),
        ([SITE, {**SITE, "numa": 1_000_000}], r"entry 1.numa must be a whole number from 0 to 1023"),
        ([SITE, {**SITE, "socket": True}], r"entry 1.socket"),
        ([SITE, {"socket": 0, "numa": 0}], r"entry 1.switch is missing"),
        ([SITE, {**SITE, "uuid": "GPU-1"}], "each entry must have a uuid of its own"),
        ([{**SITE, "uuid": "GPU-1"}, {**SITE, "uuid": "GPU-1"}], "a uuid of its own"),
        ([{**SITE, "uuid": "GPU-1"}, {**SITE, "uuid": 7}], "uuid must be a text"),
        ([{**SITE, "uuid": "GPU-1"}], "has no entry for GPU 0"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_refused_with_the_remedy(
    tmp_path: Path, node_dir: Path, facts: Any, complaint: str
) -> None:
    folder = NodeFolder(node_dir)
    folder.prepare()
    with pytest.raises(SetupError, match=complaint):
        discover(folder, 2, declare(tmp_path, facts))


def test_a_declaration_that_is_not_there_is_refused(tmp_path: Path, node_dir: Path) -> None:
    folder = NodeFolder(node_dir)
    folder.prepare()
    with pytest.raises(SetupError, match=r"--topology .*none\.json cannot be read"):
        discover(folder, 2, tmp_path / "none.json")
