"""The agent's loop.

It tells the portal how things are, hears its orders and carries them out.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from trainer.agent.claims.manager import ClaimManager
from trainer.agent.claims.outcome import Stop
from trainer.agent.claims.prepare import RunPreparation
from trainer.agent.errors import AgentError, PortalAway, SetupError, TooMuch, Unauthorised, UpgradeNeeded
from trainer.agent.executors.base import Executor, LocalGpus
from trainer.agent.node.models import held
from trainer.agent.node.notice import NoticeWatch
from trainer.agent.portal_api.client import Portal
from trainer.agent.portal_api.enrol import enrol
from trainer.agent.settings import Settings
from trainer.agent.storage.folder import NodeFolder
from trainer.protocol import (
    DEFAULT_LEASE_S,
    MAX_REPORTS_PER_SYNC,
    PROTOCOL,
    GpuUse,
    NodeFacts,
    Sync,
    SyncReply,
)

log = logging.getLogger(__name__)

EXIT_UPGRADE = 3
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
FACTS_EVERY_S = 300.0
DELIVER_AFTER_STOP_S = 5.0  # beyond the grace: uploads that take longer are done by the next agent
LAST_SYNCS = 10
REPORT_BYTES = 500_000


def longest_pause_s(lease_s: float) -> float:
    """Return the longest pause between two syncs, or tries of one.

    The portal takes a longer silence for an absence of its own.
    """
    return min(LONGEST_PAUSE_S, lease_s / 3)


def back_off_s(*, failures: int, asked_s: float, lease_s: float) -> float:
    """Return how long to wait after so many failures in a row.

    asked_s: the pause that the portal asked for, or 0.
    Full jitter: nodes that failed together come back one by one, each within a third of its
    lease.
    """
    pause_s = random.uniform(0.0, min(longest_pause_s(lease_s), 0.25 * 2 ** min(failures, 6)))
    latest_s = lease_s / 3 * random.uniform(0.7, 1.0)
    return max(SHORTEST_PAUSE_S, min(asked_s + pause_s, latest_s))


def node_facts(executor: Executor, settings: Settings, folder: NodeFolder) -> NodeFacts:
    """What the executor has, on the terms of the agent's owner. Raises SetupError."""
    return replace(
        executor.facts(),
        kind=settings.kind,
        market=settings.market,
        held_models=held(folder.models) if settings.offline else None,
    )


class Agent:
    """One node's agent; `run` returns the exit code."""

    def __init__(
        self,
        *,
        settings: Settings,
        folder: NodeFolder,
        portal: Portal,
        executor: Executor,
        workshop: RunPreparation,
        facts: NodeFacts,
        notice: NoticeWatch | None = None,
    ) -> None:
        self._settings, self._folder, self._portal = settings, folder, portal
        self._facts, self._facts_sent, self._facts_due = facts, False, time.monotonic() + FACTS_EVERY_S
        self._wake = threading.Event()
        self.claims = ClaimManager(
            folder=folder, portal=portal, executor=executor, workshop=workshop, changed=self._wake.set
        )
        self._notice = notice
        self._workshop, self._executor = workshop, executor
        self._boot_id, self._said = uuid.uuid4().hex, 0
        self._heard = time.monotonic()
        self._lease_s = DEFAULT_LEASE_S
        self._failures = 0
        self._reports = MAX_REPORTS_PER_SYNC
        self._draining = False
        self.stops_asked = 0  # raised by the signal handler: 1 stops with checkpoints, 2 kills

    def run(self) -> int:
        """Work until told to stop.

        Trainings outlive an agent that is killed or must be upgraded.
        """
        self.claims.recall()
        if self._notice:
            self._notice.start(changed=self._wake.set)
        try:
            while not self.stops_asked:
                self._rest(self._turn())
        except UpgradeNeeded as error:
            log.error("this agent is too old for the portal: upgrade it", extra={"error": str(error)})
            return EXIT_UPGRADE
        self._shut_down()
        return 0

    def close(self) -> None:
        """Let go of the folder, so that another agent may hold it, and of connections."""
        self._folder.unlock()
        self._portal.close()

    def _rest(self, pause_s: float) -> None:
        """Wait for the next sync, or less if there is news.

        The wait is in slices: a signal handler sets no Event.
        """
        start = time.monotonic()
        while not self.stops_asked and (left := start + pause_s - time.monotonic()) > 0:
            if self._wake.wait(min(left, SHORTEST_PAUSE_S)) and not self._failures:
                time.sleep(SHORTEST_PAUSE_S)  # what happens together is told together
                break
        self._wake.clear()

    def _turn(self) -> float:
        """Do one sync.

        Trainings must not be left without an agent, whatever goes wrong with it.
        """
        try:
            return self._sync()
        except UpgradeNeeded:
            raise
        except Exception:
            log.exception("a sync went wrong on this node")
            return longest_pause_s(self._lease_s)

    def _sync(self) -> float:
        """One exchange; returns how long to wait until the next."""
        try:
            reply = self._portal.sync(self._message())
        except UpgradeNeeded:
            raise
        except TooMuch as error:
            self._reports = max(1, self._reports // 2)
            return self._failed(error)
        except Unauthorised as error:
            self._enrol_again()
            return self._failed(error)
        except AgentError as error:
            return self._failed(error)
        self._obey(reply)
        return max(SHORTEST_PAUSE_S, min(reply.next_sync_s, longest_pause_s(self._lease_s)))

    def _message(self) -> Sync:
        self._refresh_facts()
        self._said += 1
        return Sync(
            protocol=PROTOCOL,
            boot_id=self._boot_id,
            seq=self._said,
            claims=self.claims.states(self._reports, REPORT_BYTES),
            gpus=tuple(self._use()),
            facts=None if self._facts_sent else self._facts,
            withdraw_in_s=self._notice.left_s() if self._notice else None,
        )

    def _use(self) -> Sequence[GpuUse]:
        """How busy each GPU or slot of this machine is; nothing where they are elsewhere."""
        executor = self._executor
        return executor.use(self._facts.gpus, self.claims.loads) if isinstance(executor, LocalGpus) else ()

    def _obey(self, reply: SyncReply) -> None:
        if self._failures:
            log.info("the portal is back", extra={"failures": self._failures})
        if reply.draining != self._draining:
            log.info("draining" if reply.draining else "no longer draining")
        self._draining, self._failures, self._facts_sent = reply.draining, 0, True
        self._heard, self._lease_s = time.monotonic(), reply.lease_s
        self._reports = min(MAX_REPORTS_PER_SYNC, self._reports * 2)
        self.claims.apply(reply.claims, take_up=not self.stops_asked)

    def _failed(self, error: AgentError) -> float:
        """Note that a sync failed.

        A portal that is away is no training's fault; only long silence ends work that may run
        elsewhere.
        """
        self._failures += 1
        log.warning("sync failed", extra={"failures": self._failures, "error": str(error)[:300]})
        silent_s = time.monotonic() - self._heard
        if silent_s > self._settings.lease_stop_s:
            reason = f"the node heard nothing from the portal for {silent_s:.0f} s and stopped its work"
            self.claims.stop_all(Stop(reason=reason))
        retry_after_s = error.retry_after_s if isinstance(error, PortalAway) else 0.0
        return back_off_s(failures=self._failures, asked_s=retry_after_s, lease_s=self._lease_s)

    def _enrol_again(self) -> None:
        """Enrol again when the token is not accepted any more.

        A join token, if one was given, makes a new identity.
        """
        if not self._settings.join_token or self._failures % 10:
            return
        try:
            enrol(self._portal, self._folder, self._settings, self._facts, lambda: bool(self.stops_asked))
            self._facts_sent = False
        except SetupError as error:
            log.error("enrolling again failed", extra={"error": str(error)})

    def _refresh_facts(self) -> None:
        if time.monotonic() < self._facts_due:
            return
        self._facts_due = time.monotonic() + FACTS_EVERY_S
        try:
            facts = node_facts(self._executor, self._settings, self._folder)
        except SetupError as error:  # what is started meanwhile is declined, and trainings go on
            log.error("the node's facts cannot be read", extra={"error": str(error)})
            return
        self._facts_sent &= facts == self._facts
        self._facts = facts
        self._workshop.gpus = facts.gpus  # a GPU that fell off changes their numbers

    def _shut_down(self) -> None:
        """Stop every training with a checkpoint, tell the portal, leave."""
        grace_s = self._settings.stop_grace_s
        log.info("stopping", extra={"claims": len(self.claims.running())})
        self.claims.stop_all(Stop(reason="the node agent was stopped", grace_s=grace_s))
        deadline = time.monotonic() + grace_s + DELIVER_AFTER_STOP_S
        while self.claims.running() and time.monotonic() < deadline and self.stops_asked < 2:
            self.claims.wait(0.1)
        self.claims.kill_all()
        self._say_goodbye()
        log.info("stopped")

    def _say_goodbye(self) -> None:
        """The last reports; what the portal cannot take now is told by the next agent."""
        try:
            for _ in range(LAST_SYNCS):
                message = self._message()
                self.claims.apply(self._portal.sync(message).claims, take_up=False)
                if not any(state.reports for state in message.claims):
                    return
        except AgentError as error:
            log.warning("the last sync failed", extra={"error": str(error)[:300]})
