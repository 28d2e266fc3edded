"""Ends of trainings that could go on.

The causes are the portal, a claim that is taken away, and the agent's own farewell.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.agent.conftest import StartAgent, StartProcess
from tests.trainer.agent.fakes.fake_portal import FakePortal, until
from tests.trainer.agent.fakes.seen import pid_of, runs, steps, under_way
from trainer.agent.claims import manager
from trainer.protocol import Outcome

LONG_TRANSFER_BYTES = 30_000_000  # half a minute where the portal is slow
WELL_BEFORE_S = 20.0  # such a transfer could end


@pytest.mark.parametrize(("stop_for", "kept"), [("preempt", True), ("cancel", False)])
def test_a_stopped_training_saves_and_its_checkpoint_is_kept_if_it_is_wanted(
    portal: FakePortal, start_agent: StartAgent, stop_for: str, kept: bool
) -> None:
    start_agent()
    given = under_way(portal)
    given.want, given.stop_for = "stop", stop_for
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (Outcome.STOPPED, 75)
    assert bool(given.bodies("checkpoint")) == kept
    assert any(path.startswith("checkpoints/") for path in given.artifacts) == kept


@pytest.mark.parametrize(("end", "kept"), [("preempt", True), ("cancel", False), ("finish", False)])
def test_checkpoints_that_only_this_node_has_stay_for_as_long_as_a_job_may_go_on_from_them(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent, end: str, kept: bool
) -> None:
    run = node_dir / "runs" / "c1"
    given = portal.give("c1", "forgetful", upload_limit_bytes=1)
    start_agent()
    until(lambda: given.bodies("checkpoint"))
    if end == "finish":
        (run / "finish").touch()
    else:
        given.want, given.stop_for = "stop", end
    until(lambda: given.end)
    until(lambda: not (node_dir / "spool" / "c1").exists())
    assert run.exists() == kept


def test_a_stop_that_is_ignored_ends_the_training_and_its_detached_grandchild(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    start_agent()
    given = under_way(portal, "stubborn")
    given.grace_s = 0.5
    pids = [pid_of(node_dir), int((node_dir / "runs" / "c1" / "grandchild").read_text())]
    given.want, given.stop_for = "stop", "cancel"
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (Outcome.STOPPED, -9)
    assert "0.5 s of grace" in end.reason
    assert not any(runs(pid) for pid in pids)


def test_a_stop_before_the_start_starts_nothing(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    given = portal.give("c1", "steady", want="stop")
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.STOPPED
    assert not (node_dir / "runs" / "c1").exists()


def test_a_stop_ends_a_long_download(portal: FakePortal, node_dir: Path, start_agent: StartAgent) -> None:
    portal.slow = True
    given = portal.give("c1", "steady", inputs={"train.jsonl": bytes(LONG_TRANSFER_BYTES)})
    start_agent()
    until(lambda: (node_dir / "runs" / "c1" / "inputs" / "train.jsonl.part").exists())
    given.want, given.stop_for = "stop", "preempt"
    assert until(lambda: given.end, timeout_s=WELL_BEFORE_S).outcome == Outcome.STOPPED
    assert given.kinds() == []


def test_a_cancel_ends_a_long_upload(portal: FakePortal, node_dir: Path, start_agent: StartAgent) -> None:
    start_agent()
    given = under_way(portal)
    (node_dir / "runs" / "c1" / "weight_bytes").write_text(str(LONG_TRANSFER_BYTES))
    portal.slow = True
    given.want, given.stop_for = "stop", "preempt"
    until(lambda: portal.uploads)
    given.stop_for = "cancel"
    assert until(lambda: given.end, timeout_s=WELL_BEFORE_S).outcome == Outcome.STOPPED
    assert given.bodies("checkpoint") == []


@pytest.mark.parametrize("how", ["stale", "unlisted"])
def test_a_claim_that_is_not_ours_any_more_is_stopped_and_forgotten(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent, how: str
) -> None:
    """F11."""
    given, other = portal.give("c1", "steady"), portal.give("c2", "steady", gpus=(1,))
    start_agent()
    until(lambda: steps(given) and steps(other))
    pid = pid_of(node_dir)
    if how == "stale":
        given.error = "stale_attempt"
    else:
        given.listed = False
    until(lambda: portal.alive == ["c2"])
    assert not runs(pid)
    assert not (node_dir / "runs" / "c1").exists()
    assert given.end is None
    assert runs(pid_of(node_dir, "c2"))


def test_gpus_that_are_given_away_are_used_once_the_training_before_has_left_them(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: so it is on the nodes that are left when a training over several lost one."""
    monkeypatch.setattr(manager, "FORGET", replace(manager.FORGET, grace_s=0.5))
    given = portal.give("c1", "stubborn")
    start_agent()
    until(lambda: given.bodies("step"))
    pid = pid_of(node_dir)
    given.listed = False
    heir = portal.give("c2", "normal")
    until(lambda: heir.phases)
    while runs(pid):
        assert heir.reports == []
        time.sleep(0.05)
    assert until(lambda: heir.end).outcome == Outcome.SUCCEEDED


def test_after_long_silence_the_node_stops_its_own_work(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    start_agent(lease_stop_s=0.5)
    given = under_way(portal)
    portal.away = True
    until(lambda: not runs(pid_of(node_dir)))
    portal.away = False
    end = until(lambda: given.end)
    assert end.outcome == Outcome.STOPPED
    assert "heard nothing from the portal" in end.reason
    assert given.bodies("checkpoint")[0]["stored"] == "portal"


def test_an_agent_that_is_told_to_leave_stops_its_trainings_with_a_checkpoint(
    portal: FakePortal, node_dir: Path, start_process: StartProcess
) -> None:
    agent = start_process()
    given = under_way(portal)
    pid = pid_of(node_dir)
    agent.terminate()
    assert agent.wait(15) == 0
    assert not runs(pid)
    assert given.end is not None
    assert given.end.outcome == Outcome.STOPPED
    assert given.bodies("checkpoint")
