"""How an end is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trainer.agent.claims.outcome import ExitFacts, Stop, classify_end
from trainer.agent.executors.base import Cause, End
from trainer.agent.node.kernel_oom import kernel_oom_kills
from trainer.protocol import Outcome

PREEMPT = Stop(reason="asked to stop: preempt")
UNSEEN = End(cause=Cause.UNSEEN)
KILLED = End(cause=Cause.KILLED, code=-9, killer="SIGKILL")
NO_MEMORY = End(cause=Cause.OUT_OF_MEMORY, code=-9, killer="SIGKILL")
UNSEEN_NO_MEMORY = replace(NO_MEMORY, code=None)
DONE = {"outcome": "succeeded", "exit_code": 0}


def left(code: int) -> End:
    return End(cause=Cause.EXIT, code=code)


@pytest.mark.parametrize(
    ("end", "result", "more", "outcome"),
    [
        (left(0), DONE, {}, Outcome.SUCCEEDED),
        (left(0), DONE, {"stop": PREEMPT}, Outcome.SUCCEEDED),  # it finished before the stop reached it
        (UNSEEN, DONE, {}, Outcome.SUCCEEDED),  # adopted: nobody saw the exit code
        (KILLED, DONE, {}, Outcome.KILLED),
        (left(0), None, {}, Outcome.ERROR),
        (left(75), {"outcome": "stopped"}, {"stop": PREEMPT}, Outcome.STOPPED),
        (left(75), {"outcome": "stopped"}, {}, Outcome.KILLED),  # somebody else sent the TERM
        (left(75), {"outcome": "stopped"}, {"nodes": 2}, Outcome.STOPPED),  # to another node of the gang
        (replace(KILLED, code=-15), None, {"stop": PREEMPT}, Outcome.STOPPED),
        (KILLED, None, {"stop": PREEMPT, "killed_after_grace": True}, Outcome.STOPPED),
        (left(76), None, {}, Outcome.OOM),
        (left(1), {"outcome": "oom"}, {}, Outcome.OOM),
        (NO_MEMORY, None, {}, Outcome.OOM),
        (UNSEEN_NO_MEMORY, None, {}, Outcome.OOM),
        (UNSEEN_NO_MEMORY, {"outcome": "error", "exit_code": 1, "reason": "bad row"}, {}, Outcome.ERROR),
        (KILLED, None, {}, Outcome.KILLED),
        (UNSEEN, None, {}, Outcome.KILLED),
        (replace(UNSEEN, cause=Cause.RESTARTED), None, {}, Outcome.KILLED),
        (left(1), {"outcome": "error", "reason": "bad row"}, {}, Outcome.ERROR),
        (left(1), {"outcome": "error", "reason": "bad row"}, {"stop": PREEMPT}, Outcome.ERROR),
        (left(1), {"outcome": "declined", "reason": "the driver is too old"}, {}, Outcome.DECLINED),
        (left(1), {"outcome": "checkpoint", "reason": "it cannot be loaded"}, {}, Outcome.CHECKPOINT),
        (left(1), {"outcome": "lost", "reason": "the other processes are gone"}, {}, Outcome.LOST),
        (left(1), {"outcome": "lost", "reason": "they left first"}, {"stop": PREEMPT}, Outcome.STOPPED),
        (left(74), None, {}, Outcome.LOST),  # the disk took no result
        (left(74), None, {"begun": False}, Outcome.DECLINED),
        (left(74), None, {"stop": PREEMPT}, Outcome.STOPPED),
        (KILLED, None, {"silent_s": 1800.0}, Outcome.TIMEOUT),
        (UNSEEN, {"outcome": "oom", "exit_code": 76}, {}, Outcome.OOM),
        (UNSEEN, {"outcome": 3, "exit_code": "x", "reason": ["\x00"]}, {}, Outcome.KILLED),
    ],
)
def test_an_end_is_judged(
    end: End, result: dict[str, Any] | None, more: dict[str, Any], outcome: Outcome
) -> None:
    ending = classify_end(ExitFacts(end=end, result=result, **more))
    assert ending.outcome == outcome
    assert ending.reason or outcome == Outcome.SUCCEEDED


def test_a_reason_says_what_was_seen() -> None:
    crash = classify_end(ExitFacts(end=left(1), result=None, last_line="KeyError: 'model'"))
    assert crash.reason == "the training exited with 1 and no result: KeyError: 'model'"
    stop = classify_end(ExitFacts(end=KILLED, result=None, stop=PREEMPT, killed_after_grace=True))
    assert stop.reason == "asked to stop: preempt; killed after 30 s of grace"
    killed = classify_end(ExitFacts(end=KILLED, result=None))
    assert killed.reason == "the training was ended by SIGKILL, which the agent did not send"
    both = classify_end(ExitFacts(end=UNSEEN, result=None))
    assert both.reason.startswith("the training's process ended while the node's agent was not running")
    assert both.reason.endswith("the node's system log tells which")
    anew = classify_end(ExitFacts(end=replace(UNSEEN, cause=Cause.RESTARTED), result=None))
    assert anew.reason == "the node's machine was restarted while the training ran"


def test_the_kernel_counts_processes_that_it_ended_for_memory() -> None:
    assert kernel_oom_kills() >= 0
