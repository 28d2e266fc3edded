"""Faults of the agent, the training, the portal and the connection.

See reliability.md, F3, F4, F10, F12.
"""

from __future__ import annotations

import json
import os
import signal
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.agent.conftest import StartAgent, StartProcess
from tests.trainer.agent.fakes.fake_portal import FakePortal, file_of, until
from tests.trainer.agent.fakes.seen import orphaned, pid_of, runs, under_way
from trainer.agent.loop import LONGEST_PAUSE_S, back_off_s
from trainer.agent.storage.spool import Spool
from trainer.protocol import Outcome, Phase, ReportKind


def test_a_new_agent_adopts_a_training_and_numbers_go_on(
    portal: FakePortal, node_dir: Path, start_process: StartProcess
) -> None:
    """F3. The fake portal checks that no report is lost, renumbered or changed."""
    given = orphaned(portal, start_process())
    pid, before = pid_of(node_dir), len(given.reports)
    start_process()
    until(lambda: len(given.reports) > before + 3)
    assert pid_of(node_dir) == pid
    assert len(set(portal.boot_ids)) == 2
    (node_dir / "runs" / "c1" / "finish").touch()
    starts = (node_dir / "runs" / "c1" / "starts").read_text().split()
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED
    assert starts == [str(pid)]
    numbers = [body["step"] for body in given.bodies("step")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_training_that_ended_while_the_agent_was_away_is_told_from_its_result(
    portal: FakePortal, node_dir: Path, start_process: StartProcess
) -> None:
    given = orphaned(portal, start_process())
    (node_dir / "runs" / "c1" / "finish").touch()
    until(lambda: not runs(pid_of(node_dir)))
    start_process()
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (Outcome.SUCCEEDED, 0)
    assert given.artifacts["output/adapter.bin"]


def test_agent_and_training_killed_together_are_told_as_killed(
    portal: FakePortal, node_dir: Path, start_process: StartProcess
) -> None:
    given = orphaned(portal, start_process())
    os.kill(pid_of(node_dir), signal.SIGKILL)
    start_process()
    assert until(lambda: given.end).outcome == Outcome.KILLED


def test_a_training_whose_pid_was_never_written_down_is_found_by_its_mark(
    portal: FakePortal, node_dir: Path, start_process: StartProcess
) -> None:
    given = orphaned(portal, start_process())
    pid = pid_of(node_dir)
    (node_dir / "runs" / "c1" / "process.json").write_text(json.dumps({"claim": "c1", "fence": 1}))
    before = len(given.reports)
    start_process()
    until(lambda: len(given.reports) > before + 3)
    given.want, given.stop_for = "stop", "preempt"
    assert until(lambda: given.end).outcome in {Outcome.STOPPED}
    assert not runs(pid)


def test_a_training_whose_record_is_broken_is_ended_and_reported_lost(
    portal: FakePortal, node_dir: Path, start_process: StartProcess
) -> None:
    """F3: adopted, or the whole tree ended; never a second start."""
    given = orphaned(portal, start_process())
    pid = pid_of(node_dir)
    (node_dir / "spool" / "c1" / "claim.json").write_text("{")
    start_process()
    assert until(lambda: given.end).outcome == Outcome.LOST
    assert not runs(pid)


def test_a_training_killed_by_somebody_else_is_told_as_killed(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    """F4."""
    start_agent()
    given = under_way(portal)
    os.kill(pid_of(node_dir), signal.SIGKILL)
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (Outcome.KILLED, -9)
    assert "SIGKILL" in end.reason


def test_reports_wait_in_order_while_the_portal_is_away(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    """F10, F12: reports wait in order while the portal is away.

    None is lost or doubled, and no training ends because of the portal.
    """
    start_agent()
    given = under_way(portal)
    portal.away = True
    before = len(given.reports)
    time.sleep(1.2)
    (node_dir / "runs" / "c1" / "finish").touch()
    until(lambda: not runs(pid_of(node_dir)))
    assert len(given.reports) == before
    portal.away = False
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED
    numbers = [body["step"] for body in given.bodies("step")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert given.artifacts["output/adapter.bin"]


@pytest.mark.parametrize(
    ("failures", "asked_s", "lease_s", "shortest", "longest"),
    [
        (1, 0, 90, 0, 0.5),
        (9, 0, 90, 0, LONGEST_PAUSE_S),
        (9, 0, 6, 0, 2),
        (1, 5, 90, 5, 5.5),
        (1, 60, 90, 21, 30),
    ],
)
def test_agents_that_failed_together_try_again_apart_and_within_a_third_of_their_lease(
    failures: int, asked_s: float, lease_s: float, shortest: float, longest: float
) -> None:
    """F12"""
    waits = [back_off_s(failures=failures, asked_s=asked_s, lease_s=lease_s) for _ in range(500)]
    assert shortest <= min(waits) <= max(waits) <= longest
    assert max(waits) - min(waits) > 0.8 * (longest - shortest)


@pytest.mark.parametrize("status", [401, 413])
def test_a_portal_that_refuses_everything_for_a_while_ends_no_training(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent, status: int
) -> None:
    start_agent()
    given = under_way(portal)
    portal.status = status
    time.sleep(0.8)
    pid, before = pid_of(node_dir), len(given.reports)
    assert runs(pid)
    portal.status = 0
    until(lambda: len(given.reports) > before)
    assert given.end is None


def test_an_agent_that_is_too_old_leaves_and_its_training_lives_on(
    portal: FakePortal, node_dir: Path, start_process: StartProcess
) -> None:
    """F18."""
    agent = start_process()
    under_way(portal)
    portal.status = 426
    assert agent.wait(10) == 3
    assert runs(pid_of(node_dir))


def test_a_checkpoint_is_uploaded_though_the_training_deletes_it_meanwhile(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    """Else a slow line would never bring one to the portal."""
    run = node_dir / "runs" / "c1"
    run.mkdir(parents=True)
    (run / "weight_bytes").write_text("400000")
    portal.slow = True
    given = portal.give("c1", "forgetful")
    start_agent()
    reported = until(lambda: given.bodies("checkpoint"))[0]
    assert not (run / "checkpoints" / f"step-{reported['step']}").exists()
    kept = {
        file["path"]: given.artifacts[f"checkpoints/step-{reported['step']}/{file['path']}"]
        for file in reported["files"]
    }
    assert sorted(map(len, kept.values()))[-1] == 400_000
    assert file_of("weights.bin", kept["weights.bin"]).sha256 in str(reported["files"])


@pytest.mark.parametrize("full_for", [3, 1000])
def test_a_success_stands_though_the_agents_disk_is_full_at_the_end(
    portal: FakePortal, start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch, full_for: int
) -> None:
    """F9: a success stands even if the agent's disk is full at the end.

    Otherwise all of it would be trained again; once there is room, the figures follow.
    """
    tries = count(1)

    def add(spool: Spool, kind: ReportKind, *more: Any) -> None:
        if kind == ReportKind.RESULT and next(tries) <= full_for:
            raise OSError(28, "No space left on device")
        original(spool, kind, *more)

    original = Spool.add
    monkeypatch.setattr(Spool, "add", add)
    monkeypatch.setattr("trainer.agent.claims.deliver.FIGURES_PAUSE_S", 0.01)
    given = portal.give("c1", "normal")
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED
    assert given.artifacts["output/adapter.bin"]
    assert len(given.bodies("result")) == (full_for == 3)


def test_a_checkpoint_that_is_not_what_its_manifest_says_is_not_reported(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    """I14."""
    start_agent()
    given = under_way(portal)
    false: dict[str, Any] = {"step": 7, "files": [{"path": "weights.bin", "sha256": "0" * 64, "bytes": 4}]}
    folder = node_dir / "runs" / "c1" / "checkpoints" / "step-9999"
    folder.mkdir(parents=True)
    (folder / "weights.bin").write_bytes(b"half")
    (folder / "manifest.json").write_text(json.dumps(false))
    given.want, given.stop_for = "stop", "preempt"
    until(lambda: given.end)
    assert [body["step"] for body in given.bodies("checkpoint")] == [given.bodies("step")[-1]["step"]]


def test_a_full_portal_is_waited_for_without_the_gpus(portal: FakePortal, start_agent: StartAgent) -> None:
    """The outputs are all that a success has to bring; the portal hears that its GPUs are free."""
    portal.full = True
    given = portal.give("c1", "normal")
    start_agent()
    until(lambda: "delivering" in given.phases)
    assert given.end is None
    portal.full = False
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED
    assert given.artifacts["output/adapter.bin"]
    order = list(Phase)
    assert sorted(given.phases, key=order.index) == given.phases


def test_a_stop_does_not_wait_for_room_at_the_portal(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    """Its checkpoint stays here, and its log is told in pieces anyhow."""
    portal.full = True
    start_agent()
    given = under_way(portal)
    given.want, given.stop_for = "stop", "pause"
    assert until(lambda: given.end).outcome == Outcome.STOPPED
    (checkpoint,) = given.bodies("checkpoint")
    assert checkpoint["stored"] == "node"
    assert given.artifacts == {}
