"""How the processes of several nodes find each other: one thread for each process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch.distributed as dist

from tests.trainer.runs import PARAMS, Run
from trainer.train.distributed import connectivity
from trainer.train.distributed.rendezvous import meet
from trainer.train.errors import PeersMissing, Stopped
from trainer.train.settings import TrainingSpec, read_order

pytestmark = pytest.mark.torch
LONG_S = 30.0


@pytest.fixture
def rendezvous() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def order_of(
    folder: Path, rendezvous: str, *, attempt: str = "attempt", within_s: float = LONG_S
) -> TrainingSpec:
    node = {"nodes": 2, "rendezvous": rendezvous, "attempt": attempt, "hang_after_s": within_s}
    return read_order(Run(folder, folder, PARAMS, node=node).write().path)


def met(order: TrainingSpec, rank: int, *, stopped: bool = False) -> dist.Store:
    return meet(order, rank, 2, lambda: stopped)


def test_processes_of_an_attempt_share_a_store_once_both_are_there(
    tmp_path: Path, rendezvous: str, capsys: pytest.CaptureFixture[str]
):
    order = order_of(tmp_path, rendezvous)
    with ThreadPoolExecutor() as threads:
        later: Future[dist.Store] = threads.submit(met, order, 1)  # before anybody serves
        time.sleep(0.3)
        first = met(order, 0)
        first.set("word", "seven")
        assert later.result().get("word") == b"seven"
    assert f"2 processes met at {rendezvous}" in capsys.readouterr().out


def test_a_process_that_an_earlier_attempt_left_behind_meets_nobody(tmp_path: Path, rendezvous: str):
    mine = order_of(tmp_path / "mine", rendezvous, within_s=1.0)
    old = order_of(tmp_path / "old", rendezvous, attempt="the one before", within_s=0.5)
    with ThreadPoolExecutor() as threads:
        left_behind = threads.submit(met, old, 1)
        with pytest.raises(PeersMissing, match="processes 1 of 2"):
            met(mine, 0)
        with pytest.raises(PeersMissing):
            left_behind.result()


def test_nodes_that_met_but_do_not_reach_each_other_say_so_at_once(
    tmp_path: Path, rendezvous: str, monkeypatch: pytest.MonkeyPatch
):
    """As where a firewall leaves open the port of the meeting alone. Both hear it."""

    @contextmanager
    def closed(order: TrainingSpec) -> Iterator[tuple[str, int]]:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))  # and does not listen
            yield "127.0.0.1", bound.getsockname()[1]

    monkeypatch.setattr(connectivity, "listener", closed)
    order = order_of(tmp_path, rendezvous)
    with ThreadPoolExecutor() as threads:
        for node in [threads.submit(met, order, rank) for rank in range(2)]:
            with pytest.raises(PeersMissing, match=r"does not reach 127.0.0.1:\d+ .*Open all TCP ports"):
                node.result()


@pytest.mark.parametrize(("interface", "named"), [("lo", "127.0.0.1"), ("=lo", "127.0.0.1"), ("ib,eth", "")])
def test_a_node_is_looked_for_where_the_training_will_talk(
    tmp_path: Path, rendezvous: str, monkeypatch: pytest.MonkeyPatch, interface: str, named: str
):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", interface)
    with connectivity.listener(order_of(tmp_path, rendezvous)) as address:
        assert (address[0] if address else "") == named
        assert connectivity.unreachable([address, None]) == ""


def test_who_waits_in_vain_says_where_it_looked(tmp_path: Path, rendezvous: str):
    with pytest.raises(PeersMissing, match=f"an answer of rank 0 at {rendezvous}"):
        met(order_of(tmp_path, rendezvous, within_s=0.2), 1)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_stop_ends_the_waiting(tmp_path: Path, rendezvous: str, rank: int):
    with pytest.raises(Stopped):
        met(order_of(tmp_path, rendezvous), rank, stopped=True)
