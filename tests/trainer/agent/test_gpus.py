"""A node with GPUs, as far as the driver's library can be simulated.

The tests cover the GPUs it offers, refuses and hands out.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.trainer.agent.conftest import ROOT, StartAgent
from tests.trainer.agent.fakes import fake_driver
from tests.trainer.agent.fakes.fake_portal import FakePortal, until
from trainer.agent import loop
from trainer.agent.errors import Declined, SetupError
from trainer.agent.node import gpu_idle, gpus
from trainer.agent.node.discovery import cannot_train, discover
from trainer.agent.node.environment import training_environment
from trainer.agent.node.gpus import find_gpus, gpu_use
from trainer.agent.node.torch_check import has_code, obstacle
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import Outcome

A100 = {"name": "NVIDIA A100-SXM4-80GB", "mib": 81920, "mig": 0, "nvlink": True}
T4 = {"name": "Tesla T4", "mib": 15360, "reserved_mib": 448}
HOST = 2**38

SetMachine = Callable[..., None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SetMachine]:
    """Says which GPUs the driver shows; torch is the one that `torch` makes."""
    modules, reported = tmp_path / "modules", tmp_path / "gpus.json"
    modules.mkdir()
    (modules / "pynvml.py").write_text("from tests.trainer.agent.fakes.fake_driver import *\n")
    (modules / "torch.py").write_text(TORCH)
    monkeypatch.setenv("FAKE_GPUS", str(reported))
    monkeypatch.setenv("PYTHONPATH", f"{modules}:{ROOT}")
    monkeypatch.setitem(sys.modules, "pynvml", fake_driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def show(*found: dict[str, Any], error: str = "", torch_cuda: str | None = "13.0") -> None:
        numbered = [{"uuid": f"GPU-{number:04x}", **gpu} for number, gpu in enumerate(found)]
        reported.write_text(json.dumps({"gpus": numbered, "error": error, "torch_cuda": torch_cuda}))
        gpus.nvml_library.cache_clear()

    yield show
    gpus.nvml_library.cache_clear()


TORCH = """
import json, os
from types import SimpleNamespace
given = json.load(open(os.environ["FAKE_GPUS"]))
__version__ = "2.13.0"
version = SimpleNamespace(cuda=given["torch_cuda"])
cuda = SimpleNamespace(
    is_available=lambda: True,
    device_count=lambda: len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")),
    get_device_capability=lambda index: (8, 0),
    get_arch_list=lambda: ["sm_75", "sm_80", "sm_90"],
)
"""


def test_several_models_are_told_apart_with_their_links(machine: SetMachine) -> None:
    machine(A100, A100, T4)
    found = find_gpus(HOST)
    assert [(gpu.index, gpu.model, gpu.memory_bytes) for gpu in found] == [
        (0, "NVIDIA A100-SXM4-80GB", 80 * 2**30),
        (1, "NVIDIA A100-SXM4-80GB", 80 * 2**30),
        (2, "Tesla T4", 14912 * 2**20),
    ]
    assert found[0].links == {"1": "nvlink", "2": "node"}
    assert found[0].pci == {"1": "node", "2": "node"}
    assert (found[0].numa, found[0].socket) == (None, None)


def test_what_the_driver_keeps_is_nobodys_to_use(machine: SetMachine) -> None:
    machine(T4, {**T4, "old_driver": True})
    new, old = find_gpus(HOST)
    assert (new.memory_bytes, old.memory_bytes) == (14912 * 2**20, 15360 * 2**20)
    assert [use.memory_used_bytes for use in gpu_use((new, old))] == [500 * 2**20, 948 * 2**20]


def test_a_gpu_without_memory_of_its_own_has_the_hosts(machine: SetMachine) -> None:
    machine({"name": "NVIDIA GB10"})
    found = find_gpus(HOST)
    assert [(gpu.model, gpu.memory_bytes) for gpu in found] == [("NVIDIA GB10", HOST)]
    assert gpu_use(found)[0].memory_used_bytes == 0


@pytest.mark.parametrize("bad", [{**A100, "lost": True}, {**A100, "mig": 1}])
def test_a_lost_or_divided_gpu_is_left_out_and_the_others_keep_their_own(
    machine: SetMachine, bad: dict[str, Any]
) -> None:
    machine(A100, bad, {**A100, "percent": 50})
    found = find_gpus(HOST)
    assert [(gpu.index, gpu.uuid) for gpu in found] == [(0, "GPU-0000"), (1, "GPU-0002")]
    assert found[0].links == {"1": "nvlink"}
    assert [use.util for use in gpu_use(found)] == [0.0, 0.5]


def test_a_machine_whose_gpus_are_all_unusable_does_not_offer_cpu_slots(machine: SetMachine) -> None:
    machine({**A100, "mig": 1})
    with pytest.raises(SetupError, match="none of the 1 GPUs"):
        find_gpus(HOST)


@pytest.mark.parametrize("named", ["0,2", "GPU-0000,GPU-0002", "2, GPU-0000"])
def test_the_agents_visible_devices_leave_gpus_to_others(
    machine: SetMachine, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    machine(A100, A100, A100)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert [gpu.uuid for gpu in find_gpus(HOST)] == ["GPU-0000", "GPU-0002"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert find_gpus(HOST) == ()


def test_a_driver_that_does_not_answer_is_said_where_there_is_one(
    machine: SetMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(error="Driver/library version mismatch")
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "none")
    assert find_gpus(HOST) == ()
    monkeypatch.setattr(gpus, "DRIVER", tmp_path)
    gpus.nvml_library.cache_clear()
    with pytest.raises(SetupError, match=r"version mismatch.*restarted"):
        find_gpus(HOST)


def test_a_node_that_offered_gpus_does_not_come_back_with_cpu_slots(
    machine: SetMachine, node_dir: Path
) -> None:
    machine(A100, A100)
    folder = NodeFolder(node_dir)
    assert len(discover(folder).gpus) == 2
    machine()
    with pytest.raises(SetupError, match="offered 2 GPUs"):
        discover(folder)


def test_an_agent_says_that_qlora_needs_bitsandbytes_until_it_is_installed(
    machine: SetMachine, portal: FakePortal, start_agent: StartAgent, node_dir: Path
) -> None:
    machine(A100)
    start_agent()
    reported = until(lambda: portal.enrolments)[0]
    assert ("bitsandbytes" in reported.software) != ("qlora" in reported.cannot_train)
    assert cannot_train({"bitsandbytes": "0.50.2"}, has_gpus=True) == {}
    assert cannot_train({}, has_gpus=True) == {
        "qlora": "bitsandbytes is missing, install requirements/gpu.lock on it"
    }
    assert cannot_train({"bitsandbytes": "0.50.2"}, has_gpus=False) == {"qlora": "4-bit training needs a GPU"}


def test_a_training_gets_its_own_gpus_by_uuid(
    machine: SetMachine, portal: FakePortal, start_agent: StartAgent, node_dir: Path
) -> None:
    machine(A100, A100, A100)
    given = portal.give("c1", "environment", gpus=(2, 0))
    run = node_dir / "runs" / "c1"
    start_agent(model_roots=(Path("/srv/models"),))
    # While it runs: once its end is known the folder goes.
    spec = json.loads(until(lambda: (run / "spec.json").exists() and (run / "spec.json").read_text()))
    found = run / "environment.json"
    seen = json.loads(until(lambda: found.exists() and found.read_text()))
    assert (spec["local"]["device"], spec["local"]["model_roots"]) == ("cuda", ["/srv/models"])
    assert seen["CUDA_VISIBLE_DEVICES"] == "GPU-0002,GPU-0000"
    assert seen["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED


def test_a_gpu_that_fell_off_is_told_and_orders_go_by_the_new_numbers(
    machine: SetMachine,
    portal: FakePortal,
    start_agent: StartAgent,
    node_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "FACTS_EVERY_S", 0.0)
    machine(A100, A100)
    agent = start_agent()
    until(lambda: [len(facts.gpus) for facts in portal.told] == [2])
    machine({**A100, "lost": True}, A100)
    until(lambda: [gpu.uuid for gpu in portal.told[-1].gpus] == ["GPU-0001"])
    portal.give("c1", "environment", gpus=(0,))
    found = node_dir / "runs" / "c1" / "environment.json"
    seen = json.loads(until(lambda: found.exists() and found.read_text()))
    assert seen["CUDA_VISIBLE_DEVICES"] == "GPU-0001"
    agent.stop()
    told = len(portal.told)
    start_agent()
    until(lambda: len(portal.told) > told)  # with each start of an agent


def test_a_gpu_that_somebody_else_uses_is_declined_and_not_run_out_of_memory(
    machine: SetMachine,
    portal: FakePortal,
    start_agent: StartAgent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_idle, "LEAVE_WITHIN_S", 0.2)
    machine(A100, {**A100, "used_mib": 40960})
    given = portal.give("c1", "steady", gpus=(1,))
    start_agent()
    end = until(lambda: given.end)
    assert end.outcome == Outcome.DECLINED
    assert "40.0 GiB of GPU 1" in end.reason
    with pytest.raises(Declined):
        gpu_idle.await_vacancy(lambda: gpu_idle.busy(find_gpus(HOST)), threading.Event())


def test_an_agent_whose_torch_cannot_use_the_gpus_does_not_start(
    machine: SetMachine, start_agent: StartAgent
) -> None:
    machine(A100, torch_cuda=None)
    with pytest.raises(SetupError, match=r"torch 2\.13\.0 is a build without CUDA"):
        start_agent()


def test_what_keeps_torch_from_the_gpus_is_named() -> None:
    def torch(**changes: Any) -> SimpleNamespace:
        cuda = {
            "is_available": lambda: True,
            "device_count": lambda: 2,
            "get_device_capability": lambda index: (7, 0),
            "get_device_name": lambda index: "Tesla V100-SXM2-16GB",
            "get_arch_list": lambda: ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"],
            **changes,
        }
        return SimpleNamespace(
            __version__="2.13.0", version=SimpleNamespace(cuda="13.0"), cuda=SimpleNamespace(**cuda)
        )

    assert "no code for Tesla V100-SXM2-16GB (compute capability 7.0)" in obstacle(torch(), 2)
    assert "torch sees 2 of 8" in obstacle(torch(), 8)
    assert "finds none" in obstacle(torch(is_available=lambda: False), 2)
    assert obstacle(torch(get_device_capability=lambda index: (8, 6)), 2) == ""


@pytest.mark.parametrize(
    ("capability", "built_for", "runs"),
    [
        ((8, 6), ["sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((9, 0), ["sm_90a"], True),
        ((12, 0), ["sm_80", "sm_90"], False),
        ((12, 0), ["sm_80", "compute_90"], True),
        ((10, 3), ["sm_100", "sm_120"], True),
    ],
)
def test_a_build_runs_on_the_gpus_that_it_has_code_for(
    capability: tuple[int, int], built_for: list[str], runs: bool
) -> None:
    assert has_code(capability, built_for) is runs


def test_how_nodes_reach_each_other_is_the_administrators_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "bond0")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "bond0")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:512")
    found = training_environment(run=Path("/run"), models=Path("/models"), gpus=(), threads=4, offline=True)
    assert (found["NCCL_SOCKET_IFNAME"], found["GLOO_SOCKET_IFNAME"]) == ("bond0", "bond0")
    assert found["PYTORCH_ALLOC_CONF"] == "max_split_size_mb:512"
    assert found["CUDA_VISIBLE_DEVICES"] == ""
