"""Claims under an executor with a queue and words of its own, and without GPUs of this machine."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.trainer.agent.conftest import StartAgent
from tests.trainer.agent.fakes.fake_portal import FakePortal, until
from trainer.agent import link_test, speed_test
from trainer.agent.executors.base import Cause, End, Handle, Launch, LocalGpus, Waiting
from trainer.agent.executors.table import EXECUTORS
from trainer.agent.loop import EXIT_UPGRADE
from trainer.agent.node import discovery
from trainer.agent.node.usage import Load
from trainer.protocol import GpuFacts, NodeFacts, Outcome

SHORT_S = 0.3  # of silence that ends a training


class FakeEngine:
    """What the test lets it say; it runs nothing."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.wait: Waiting | None = Waiting(reason="Priority")
        self.end: End | None = None
        self.words = ""
        self.polls = 0

    def facts(self) -> NodeFacts:
        seat = GpuFacts(index=0, model="NVIDIA A100-SXM4-80GB", memory_bytes=80 * 2**30)
        return NodeFacts(hostname="engine", cores=8, memory_bytes=2**36, gpus=(seat,))

    def begin(self, claim: str) -> Handle:
        return Handle(claim)

    def submit(self, launch: Launch, begun: Handle) -> Handle:
        self.launches.append(launch)
        return begun

    def poll(self, handle: Handle) -> End | None:
        self.polls += 1
        return self.end

    def load(self, handle: Handle) -> Load | None:
        return None

    def cancel(self, handle: Handle, *, force: bool) -> None:
        self.end = self.end or End(cause=Cause.KILLED)

    def waiting(self, handle: Handle) -> Waiting | None:
        return self.wait

    def log(self, handle: Handle) -> str:
        return self.words


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine()
    monkeypatch.setitem(EXECUTORS, "fake", lambda options: engine)
    return engine


@pytest.fixture
def executor(engine: FakeEngine) -> str:
    return "fake"


def tell(engine: FakeEngine, kind: str, **body: object) -> None:
    """Let its training tell something."""
    with (engine.launches[0].run / "events.jsonl").open("a") as file:
        file.write(json.dumps({"kind": kind, **body}) + "\n")


def test_a_claim_is_queued_until_it_begins_and_told_why(
    portal: FakePortal, engine: FakeEngine, start_agent: StartAgent
) -> None:
    given = portal.give("c1", "")
    start_agent()
    until(lambda: "Priority" in given.waits)
    engine.wait = Waiting(reason="Resources")
    until(lambda: "Resources" in given.waits)
    assert set(given.phases) == {"queued"}
    engine.wait = None
    until(lambda: "starting" in given.phases)
    tell(engine, "start", steps_total=1)
    until(lambda: "running" in given.phases)
    engine.end = End(cause=Cause.EXIT, code=1)
    assert until(lambda: given.end).outcome == Outcome.ERROR
    phases = list(dict.fromkeys(given.phases))
    assert [phase for phase in phases if phase != "delivering"] == ["queued", "starting", "running", "ended"]


def test_silence_ends_a_training_only_once_it_has_begun(
    portal: FakePortal, engine: FakeEngine, start_agent: StartAgent
) -> None:
    given = portal.give("c1", "", hang_after_s=SHORT_S)
    start_agent()
    until(lambda: "Priority" in given.waits)
    polls, since = engine.polls, time.monotonic()
    until(lambda: engine.polls > polls + 3 and time.monotonic() > since + 3 * SHORT_S)
    assert (set(given.phases), given.end) == ({"queued"}, None)
    engine.wait = None
    assert until(lambda: given.end).outcome == Outcome.TIMEOUT


def test_a_stop_withdraws_what_waits(portal: FakePortal, engine: FakeEngine, start_agent: StartAgent) -> None:
    given = portal.give("c1", "")
    start_agent()
    until(lambda: "Priority" in given.waits)
    given.want, given.stop_for = "stop", "cancel"
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (Outcome.STOPPED, None)
    assert "starting" not in given.phases


def test_the_next_agent_knows_that_a_training_has_left_the_queue(
    portal: FakePortal, engine: FakeEngine, start_agent: StartAgent
) -> None:
    given = portal.give("c1", "")
    first = start_agent()
    engine.wait = None
    until(lambda: "starting" in given.phases)
    portal.status = 426
    first.thread.join(20)
    assert not first.thread.is_alive(), f"it leaves with {EXIT_UPGRADE}, and its training goes on"
    first.agent.close()
    heard, portal.status = len(given.phases), 0
    start_agent()
    until(lambda: len(given.phases) > heard + 3)
    assert set(given.phases[heard:]) == {"starting"}
    assert len(engine.launches) == 1


@pytest.mark.parametrize("printed", ["", "no such model"])
def test_its_words_explain_an_end_of_which_the_training_printed_nothing(
    portal: FakePortal, engine: FakeEngine, start_agent: StartAgent, printed: str
) -> None:
    engine.words = "cancelled by root"
    given = portal.give("c1", "")
    start_agent()
    until(lambda: engine.launches)
    (engine.launches[0].run / "log.txt").write_text(printed)
    engine.end = End(cause=Cause.KILLED)
    end = until(lambda: given.end)
    assert (end.outcome, end.exit_code) == (Outcome.KILLED, None)
    assert end.reason.endswith(f": {printed or engine.words}")


def test_nothing_of_this_machine_is_looked_at(
    portal: FakePortal,
    engine: FakeEngine,
    start_agent: StartAgent,
    node_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was looked at")

    for module, name in ((speed_test, "_tested"), (link_test, "_tested"), (discovery, "find_gpus")):
        monkeypatch.setattr(module, name, refuse)
    assert not isinstance(engine, LocalGpus)
    given = portal.give("c1", "")
    start_agent(speed_test=True, kind="on_demand")
    launch = until(lambda: engine.launches and engine.launches[0])
    assert (launch.resources, launch.inputs_ready) == (given.spec.resources, True)
    assert "CUDA_VISIBLE_DEVICES" not in launch.environment
    assert (launch.run / "inputs" / "train.jsonl").exists()
    assert json.loads((launch.run / "spec.json").read_text())["local"]["device"] == "cuda"
    (told,) = portal.enrolments
    assert (told.hostname, told.kind, told.speed_tests) == ("engine", "on_demand", ())
    assert portal.uses == []
