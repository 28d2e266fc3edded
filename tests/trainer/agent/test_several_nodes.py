"""One node's share of a training over several.

The tests cover the meeting point, the waiting, and its ends.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.agent.conftest import StartAgent
from tests.trainer.agent.fakes.fake_portal import ONE_SLOT, FakePortal, Given, until
from trainer.agent.claims import rendezvous
from trainer.agent.claims.rendezvous import Rendezvous
from trainer.agent.claims.store import ClaimRecord, load_record
from trainer.agent.errors import Declined
from trainer.agent.node.environment import training_environment
from trainer.agent.node.network import Site
from trainer.agent.settings import read_settings
from trainer.agent.storage.folder import NodeFolder
from trainer.agent.storage.spool import Spool
from trainer.protocol import Outcome, Spec

PORTAL = "http://127.0.0.1:8000"
MEET = "127.0.0.1:29500"


def share(portal: FakePortal, rank: int, mode: str = "steady") -> Given:
    return portal.give("c1", mode, nodes=2, rank=rank)


def spec_of(node_dir: Path) -> dict[str, Any]:
    """The environment and order that the training got."""
    return json.loads((node_dir / "runs" / "c1" / "spec.json").read_text())["spec"]


def test_the_node_of_rank_0_says_where_to_meet_before_it_trains(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    given = share(portal, 0)
    start_agent(ports=range(20000, 32000))
    until(lambda: given.bodies("step"))
    assert given.kinds()[0] == "rendezvous"
    address = given.bodies("rendezvous")[0]["address"]
    host, _, port = address.partition(":")
    assert host == "127.0.0.1"
    assert 20000 <= int(port) < 32000
    assert spec_of(node_dir)["rendezvous"] == address


def test_another_node_starts_once_it_has_heard_where(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    given = share(portal, 1)
    start_agent()
    until(lambda: (node_dir / "runs" / "c1" / "inputs" / "train.jsonl").exists())
    assert not (node_dir / "runs" / "c1" / "spec.json").exists()
    given.rendezvous = MEET
    until(lambda: given.bodies("step"))
    assert spec_of(node_dir)["rendezvous"] == MEET
    assert "rendezvous" not in given.kinds()


def test_a_new_agent_goes_on_waiting_where_the_old_one_was_killed(
    portal: FakePortal, node_dir: Path, start_process: Callable[[], subprocess.Popen[bytes]]
) -> None:
    given = share(portal, 1, "normal")
    first = start_process()
    until(lambda: (node_dir / "runs" / "c1" / "inputs" / "train.jsonl").exists())
    first.kill()
    first.wait()
    start_process()
    given.rendezvous = MEET
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED


def test_a_stop_ends_the_waiting_and_nothing_ran(portal: FakePortal, start_agent: StartAgent) -> None:
    given = share(portal, 1)
    start_agent()
    until(lambda: given.phases)
    given.want, given.stop_for = "stop", "cancel"
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code, given.reports) == (Outcome.STOPPED, None, [])


def test_waiting_in_vain_is_nobodys_fault_here(
    portal: FakePortal, start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendezvous, "HEAR_WITHIN_S", 0.1)
    given = share(portal, 1)
    start_agent()
    end = until(lambda: given.end)
    assert end.outcome == Outcome.LOST
    assert "the node of rank 0 did not say" in end.reason


def test_an_agent_that_restarts_keeps_to_the_address_it_told(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path)
    folder.prepare()
    names = {"job": "j", "attempt": "a", "claim": "c1", "recipe": "sft", "entry": "e", "model": "m"}
    spec = Spec(**names, fence=1, params={}, gpus=(0,), resources=ONE_SLOT, nodes=2)
    site, reported = Site(portal=PORTAL), []
    for record in (ClaimRecord(spec=spec, folder=folder), None):
        known = record or load_record(folder, "c1")
        assert known is not None
        known.save()
        spool = Spool(known.spool / "reports.jsonl")
        reported.append(
            Rendezvous(known, spool, site, lambda: None).spec_with_address(threading.Event()).rendezvous
        )
        spool.acknowledge(0)
        assert [report.body for report in spool.pending(10, 10_000)] == [{"address": reported[0]}]
    assert reported[0] == reported[1] != ""


def test_only_the_given_ports_are_offered_and_none_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Declined, match="--ports"):
            Site(portal=PORTAL, ports=[port]).rendezvous()
    assert Site(portal=PORTAL, address="node1", ports=[port]).rendezvous() == f"node1:{port}"
    assert Site(portal=PORTAL, address="fd00::7", ports=[port]).rendezvous() == f"[fd00::7]:{port}"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems call the loopback interface otherwise")
def test_a_training_talks_over_the_interface_of_its_nodes_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Site(portal=PORTAL).interface() == "lo"
    assert Site(portal=PORTAL, address="192.0.2.1").interface() == ""
    assert sockets(interface="eth1") == ("eth1", "=eth1")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "ib0")
    assert sockets(interface="eth1") == ("eth1", "ib0")
    assert sockets(interface="") == (None, "ib0")


def sockets(interface: str) -> tuple[str | None, str | None]:
    """The interfaces that gloo and NCCL are told to use."""
    run, models = Path("/run"), Path("/models")
    found = training_environment(
        run=run, models=models, gpus=(), threads=1, offline=True, interface=interface
    )
    return found.get("GLOO_SOCKET_IFNAME"), found.get("NCCL_SOCKET_IFNAME")


@pytest.mark.parametrize(
    "options", [["--ports", "0-10"], ["--ports", "9-8"], ["--ports", "x"], ["--address", "node1:80"]]
)
def test_a_wrong_address_or_range_is_named(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_settings(["--portal", PORTAL, *options])
    assert f"argument {options[0]}: must be" in capsys.readouterr().err
