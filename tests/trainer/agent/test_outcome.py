"""How an end is judged."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.agent.claims.outcome import ExitFacts, Stop, classify_end, kernel_oom_kills
from trainer.agent.executors.base import Exit
from trainer.protocol import Outcome

PREEMPT = Stop(reason="asked to stop: preempt")
DONE = {"outcome": "succeeded", "exit_code": 0}


@pytest.mark.parametrize(
    ("code", "result", "more", "outcome"),
    [
        (0, DONE, {}, Outcome.SUCCEEDED),
        (0, DONE, {"stop": PREEMPT}, Outcome.SUCCEEDED),  # it finished before the stop reached it
        (None, DONE, {}, Outcome.SUCCEEDED),  # adopted: nobody saw the exit code
        (-9, DONE, {}, Outcome.KILLED),
        (0, None, {}, Outcome.ERROR),
        (75, {"outcome": "stopped"}, {"stop": PREEMPT}, Outcome.STOPPED),
        (75, {"outcome": "stopped"}, {}, Outcome.KILLED),  # somebody else sent the TERM
        (75, {"outcome": "stopped"}, {"nodes": 2}, Outcome.STOPPED),  # to another node of the gang
        (-15, None, {"stop": PREEMPT}, Outcome.STOPPED),
        (-9, None, {"stop": PREEMPT, "killed_after_grace": True}, Outcome.STOPPED),
        (76, None, {}, Outcome.OOM),
        (1, {"outcome": "oom"}, {}, Outcome.OOM),
        (-9, None, {"kernel_oom": True}, Outcome.OOM),
        (None, None, {"kernel_oom": True}, Outcome.OOM),
        (1, None, {"kernel_oom": True}, Outcome.ERROR),
        (-9, None, {}, Outcome.KILLED),
        (None, None, {}, Outcome.KILLED),
        (1, {"outcome": "error", "reason": "bad row"}, {}, Outcome.ERROR),
        (1, {"outcome": "error", "reason": "bad row"}, {"stop": PREEMPT}, Outcome.ERROR),
        (1, {"outcome": "declined", "reason": "the driver is too old"}, {}, Outcome.DECLINED),
        (1, {"outcome": "lost", "reason": "the other processes are gone"}, {}, Outcome.LOST),
        (1, {"outcome": "lost", "reason": "they left first"}, {"stop": PREEMPT}, Outcome.STOPPED),
        (74, None, {}, Outcome.LOST),  # the disk took no result
        (74, None, {"begun": False}, Outcome.DECLINED),
        (74, None, {"stop": PREEMPT}, Outcome.STOPPED),
        (-9, None, {"silent_s": 1800.0}, Outcome.TIMEOUT),
        (None, {"outcome": "oom", "exit_code": 76}, {}, Outcome.OOM),
        (None, {"outcome": 3, "exit_code": "x", "reason": ["\x00"]}, {}, Outcome.KILLED),
    ],
)
def test_an_end_is_judged(
    code: int | None, result: dict[str, Any] | None, more: dict[str, Any], outcome: Outcome
) -> None:
    ending = classify_end(ExitFacts(exit=Exit(code=code), result=result, **more))
    assert ending.outcome == outcome
    assert ending.reason or outcome == Outcome.SUCCEEDED


def test_a_reason_says_what_was_seen() -> None:
    crash = classify_end(ExitFacts(exit=Exit(code=1), result=None, last_line="KeyError: 'model'"))
    assert crash.reason == "the training exited with 1 and no result: KeyError: 'model'"
    stop = classify_end(ExitFacts(exit=Exit(code=-9), result=None, stop=PREEMPT, killed_after_grace=True))
    assert stop.reason == "asked to stop: preempt; killed after 30 s of grace"


def test_the_kernel_counts_processes_that_it_ended_for_memory() -> None:
    assert kernel_oom_kills() >= 0
