"""How a claim ended, judged from what the training left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.agent.executors.base import Cause, End
from trainer.agent.storage.text import clean_text
from trainer.protocol import EXIT_NO_ROOM, EXIT_OOM, EXIT_STOPPED, Outcome

ANEW = "the node's machine was restarted while the training ran"
WITHDRAWN = "the training was ended by something other than the agent, or could not begin"
UNSEEN = (
    "the training's process ended while the node's agent was not running, and left no result: probably both"
    " were killed together, by a stop of the agent's service or by hand; the node's system log tells which"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEnd:
    """The end of a claim, for the portal."""

    outcome: Outcome
    exit_code: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The reason why a claim is to stop.

    `outcome` and `reason` are reported unless the training ended by itself first.
    wanted_files: whether its last checkpoint and outputs are still to be uploaded.
    forget: the end is not needed any more; the claim is deleted.
    """

    outcome: Outcome = Outcome.STOPPED
    reason: str = ""
    grace_s: float = 30.0
    wanted_files: bool = True
    forget: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitFacts:
    """All that is known once a training is over."""

    end: End
    result: Mapping[str, Any] | None  # result.json
    stop: Stop | None = None
    killed_after_grace: bool = False
    silent_s: float | None = None  # it was ended because no event came for this long
    last_line: str = ""
    nodes: int = 1
    begun: bool = True  # the model was loaded and the data counted


def classify_end(seen: ExitFacts) -> ClaimEnd:
    """Return the outcome of a training, with a reason its owner understands.

    A finish that came before a stop stands.
    """
    stated = str((seen.result or {}).get("outcome", ""))
    code = _code(seen)
    if stated == Outcome.SUCCEEDED and code in {0, None}:
        return ClaimEnd(outcome=Outcome.SUCCEEDED, exit_code=code)
    if seen.silent_s is not None:
        reason = f"the training gave no sign of life for {seen.silent_s:g} s and was ended"
        return ClaimEnd(outcome=Outcome.TIMEOUT, exit_code=code, reason=reason)
    if stated == Outcome.OOM or code == EXIT_OOM or _ran_out_of_memory(seen):
        return ClaimEnd(outcome=Outcome.OOM, exit_code=code, reason=_stated_reason(seen) or "out of memory")
    if stated == Outcome.ERROR:
        return ClaimEnd(outcome=Outcome.ERROR, exit_code=code, reason=_stated_reason(seen) or seen.last_line)
    if seen.stop is not None:
        return _stopped(seen.stop, seen.killed_after_grace, code)
    if stated in (Outcome.DECLINED, Outcome.CHECKPOINT):  # as good as never begun: without an exit code
        return ClaimEnd(outcome=Outcome(stated), reason=_stated_reason(seen) or seen.last_line)
    if stated == Outcome.LOST:
        return ClaimEnd(outcome=Outcome.LOST, exit_code=code, reason=_stated_reason(seen) or seen.last_line)
    return _unexplained(seen, code)


def _stopped(stop: Stop, killed_after_grace: bool, code: int | None) -> ClaimEnd:
    reason = stop.reason
    if killed_after_grace:
        reason = f"{reason}; killed after {stop.grace_s:g} s of grace".removeprefix("; ")
    return ClaimEnd(outcome=stop.outcome, exit_code=code, reason=reason)


def _unexplained(seen: ExitFacts, code: int | None) -> ClaimEnd:
    """Return the end of a training that ended without a request and without a reason.

    Its result.json does not say why.
    """
    if code == EXIT_NO_ROOM:
        reason = f"the node's disk is full or read-only: {seen.last_line}".removesuffix(": ")
        if not seen.begun:
            return ClaimEnd(outcome=Outcome.DECLINED, reason=reason)
        return ClaimEnd(outcome=Outcome.LOST, exit_code=code, reason=reason)
    if code is None:
        reason = {Cause.RESTARTED: ANEW, Cause.KILLED: WITHDRAWN}.get(seen.end.cause, UNSEEN)
        if seen.end.cause is Cause.KILLED and seen.last_line:
            reason = f"{reason}: {seen.last_line}"
        return ClaimEnd(outcome=Outcome.KILLED, reason=reason)
    if code == EXIT_STOPPED and seen.nodes > 1:  # a stop of one node is a stop of all
        reason = "another node of this training was asked to stop"
        return ClaimEnd(outcome=Outcome.STOPPED, exit_code=code, reason=reason)
    if code == EXIT_STOPPED:
        reason = "the training was stopped by something other than the agent; it saved a checkpoint"
        return ClaimEnd(outcome=Outcome.KILLED, exit_code=code, reason=reason)
    if seen.end.cause is not Cause.EXIT and seen.end.killer:
        reason = f"the training was ended by {seen.end.killer}, which the agent did not send"
        return ClaimEnd(outcome=Outcome.KILLED, exit_code=code, reason=reason)
    where = f": {seen.last_line}" if seen.last_line else ""
    return ClaimEnd(
        outcome=Outcome.ERROR, exit_code=code, reason=f"the training exited with {code} and no result{where}"
    )


def _ran_out_of_memory(seen: ExitFacts) -> bool:
    """The executor says so, and the training itself announced no other end."""
    return seen.end.cause is Cause.OUT_OF_MEMORY and _code(seen) == seen.end.code


def _code(seen: ExitFacts) -> int | None:
    """Return the exit code that was seen.

    After adoption it is the one that result.json announces.
    """
    if seen.end.code is not None:
        return seen.end.code
    announced = (seen.result or {}).get("exit_code")
    fits = isinstance(announced, int) and not isinstance(announced, bool) and -255 <= announced <= 255
    return announced if fits else None


def _stated_reason(seen: ExitFacts) -> str:
    return clean_text(str((seen.result or {}).get("reason") or ""))
