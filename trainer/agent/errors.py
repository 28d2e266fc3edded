"""Errors between node and portal.

AgentError
    SetupError        this agent cannot run as asked: shown to the person who started it
    UpgradeNeeded     the portal no longer speaks this agent's protocol
    PortalAway        nothing wrong here: try again later
        Unauthorised  the node token is not accepted (now)
        PortalFull    its disk has no room (now)
    TooMuch           the message was too large: send less
    PortalRefused     the portal will never accept this, or never have it
        ContentLost   it has lost a file, or has another content than it announced
    StaleClaim        the claim is no longer this node's
    Declined          this node cannot start the claim
    InputLost         no node can start the claim: what it starts from is lost or damaged
        CheckpointGone  its checkpoint lay on this node alone and is deleted
    PeerAway          another node of the claim's attempt does not come
    Interrupted       a transfer or a start that nobody waits for any more
"""

from __future__ import annotations

from trainer.protocol import Outcome


class AgentError(Exception):
    """Base of all errors of the agent."""


class SetupError(AgentError):
    """The agent cannot run as asked; the message says what to change."""


class UpgradeNeeded(AgentError):
    """The portal speaks other versions of the protocol."""


class PortalAway(AgentError):
    """The portal cannot be reached or cannot answer now.

    retry_after_s: the pause that it asked for, or 0.
    """

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unauthorised(PortalAway):
    """The node token is not accepted.

    Trainings go on: the portal may be wrong.
    """


class PortalFull(PortalAway):
    """The portal's disk has no room for a file."""


class TooMuch(AgentError):
    """The portal found the message too large."""


class PortalRefused(AgentError):
    """The portal will not accept this, now or later."""


class ContentLost(PortalRefused):
    """The portal has lost a file, or has another content than it announced."""


class StaleClaim(AgentError):
    """The claim's fence is no longer the job's current one."""


class Declined(AgentError):
    """The claim cannot be started on this node.

    The message becomes the claim's reason.
    """


class InputLost(AgentError):
    """What the claim is to start from is lost or damaged, wherever it would start.

    outcome: of the claim.
    """

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome


class CheckpointGone(InputLost):
    """The checkpoint to resume from is not on this node any more.

    It lay on this node alone.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, Outcome.CHECKPOINT)


class PeerAway(AgentError):
    """Another node of the same attempt kept this one waiting; nobody here is at fault."""


class Interrupted(AgentError):
    """The claim was stopped or dropped during a transfer or a wait for another node."""
