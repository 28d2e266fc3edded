"""All claims of this node, and what the portal's answers do to them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from trainer.agent.claims.claim import FORGET, NodeClaim
from trainer.agent.claims.outcome import Stop
from trainer.agent.claims.prepare import RunPreparation
from trainer.agent.claims.store import ClaimRecord, load_record
from trainer.agent.executors.base import Executor, Handle
from trainer.agent.node.models import make_room
from trainer.agent.node.usage import Load
from trainer.agent.portal_api.client import Portal
from trainer.agent.storage.folder import CHECKPOINTS, NodeFolder
from trainer.protocol import ClaimOrder, ClaimState, Outcome, Phase, Spec

log = logging.getLogger(__name__)


class ClaimManager:
    """Takes up, recalls, stops and forgets claims. Used by the agent's loop only."""

    def __init__(
        self,
        *,
        folder: NodeFolder,
        portal: Portal,
        executor: Executor,
        workshop: RunPreparation,
        changed: Callable[[], None],
    ) -> None:
        self._folder, self._portal, self._executor = folder, portal, executor
        self._workshop, self._changed = workshop, changed
        self._claims: dict[str, NodeClaim] = {}
        self._refused: dict[str, ClaimState] = {}  # ended here without ever having been taken up

    def recall(self) -> None:
        """Find the claims of an earlier agent.

        Trainings that were started are followed at once.
        """
        for name in self._folder.known_claims():
            record = load_record(self._folder, name)
            if record is None:
                log.error("the record of a claim cannot be read", extra={"claim": name})
                self._executor.cancel(Handle(name), force=True)
                self._folder.forget(name, keep={CHECKPOINTS})
                continue
            claim = self._claims[name] = self._make(record)
            if claim.was_launched:
                log.info("claim adopted", extra={"claim": name, "job": record.spec.job})
                claim.start()
        self._folder.sweep(self._needed())

    def apply(self, orders: Sequence[ClaimOrder], *, take_up: bool) -> None:
        """Make the claims as the portal wants them.

        Claims that it does not list are not ours any more.
        """
        listed = {order.claim for order in orders}
        for name, claim in list(self._claims.items()):
            if name not in listed:
                claim.stop(FORGET)
            if claim.dispose():
                del self._claims[name]
                log.info("claim forgotten", extra={"claim": name})
                self._folder.sweep(self._needed())
        self._refused = {name: state for name, state in self._refused.items() if name in listed}
        for order in orders:
            if order.claim in self._claims:
                self._claims[order.claim].apply(order)
            elif take_up and order.claim not in self._refused:
                self._take_up(order)

    def _take_up(self, order: ClaimOrder) -> None:
        if order.error == "bad_spec":
            self._refuse(order, Outcome.DECLINED, f"the node does not understand the order: {order.detail}")
        elif order.error == "stale_attempt":
            return
        elif order.spec is None:
            self._refuse(order, Outcome.LOST, "the node no longer has this run")
        elif order.want == "stop":
            self._refuse(order, Outcome.STOPPED, "stopped before it was started")
        else:
            self._start(order, order.spec)

    def _start(self, order: ClaimOrder, spec: Spec) -> None:
        """Start a claim, written down before anything else.

        An agent that dies now must still know it.
        """
        record = ClaimRecord(spec=spec, folder=self._folder)
        try:
            record.save()
            claim = self._make(record)
        except OSError as error:
            return self._refuse(order, Outcome.DECLINED, f"the node cannot write its records: {error}")
        self._claims[order.claim] = claim
        self._make_room()
        log.info("claim taken up", extra={"claim": order.claim, "job": spec.job, "gpus": spec.gpus})
        claim.apply(order)
        return self._changed()

    def _make_room(self) -> None:
        """Delete unused downloaded models, down to the limit.

        It is done here, where no claim can be taken up meanwhile: a model that is needed must
        not be deleted.
        """
        limit_bytes = self._workshop.models_limit_bytes
        if limit_bytes is not None:
            used = [claim.spec.model for claim in self._claims.values()]
            make_room(self._folder.models, limit_bytes, used)

    def _refuse(self, order: ClaimOrder, outcome: Outcome, reason: str) -> None:
        log.error("claim refused", extra={"claim": order.claim, "outcome": outcome, "reason": reason})
        self._refused[order.claim] = ClaimState(
            claim=order.claim, fence=order.fence, phase=Phase.ENDED, outcome=outcome, reason=reason[:2000]
        )
        self._changed()

    def _make(self, record: ClaimRecord) -> NodeClaim:
        return NodeClaim(
            record,
            portal=self._portal,
            executor=self._executor,
            workshop=self._workshop,
            holder=self._holder,
            changed=self._changed,
        )

    def _holder(self, spec: Spec) -> str:
        """Asked from the threads of claims."""
        for name, other in list(self._claims.items()):
            if name != spec.claim and set(other.spec.gpus) & set(spec.gpus) and other.handle():
                return f"the training of claim {name} has not left its GPUs yet"
        return ""

    def _needed(self) -> list[str]:
        """Claims of earlier attempts whose checkpoints a claim here goes on from."""
        return [claim.spec.resume.claim for claim in self._claims.values() if claim.spec.resume]

    def states(self, limit: int, limit_bytes: int) -> tuple[ClaimState, ...]:
        """States of all claims, within a number and size of reports over all."""
        states = list(self._refused.values())
        for claim in self._claims.values():
            state = claim.state(limit, limit_bytes)
            limit -= len(state.reports)
            states.append(state)
        return tuple(states)

    def loads(self) -> dict[str, tuple[Load, tuple[int, ...]]]:
        """The use of the node by running trainings, and the slots that they hold."""
        loads = {name: claim.load() for name, claim in self._claims.items()}
        return {name: (load, self._claims[name].spec.gpus) for name, load in loads.items() if load}

    def running(self) -> list[NodeClaim]:
        """Claims with something left to do."""
        return [claim for claim in self._claims.values() if claim.busy]

    def stop_all(self, stop: Stop) -> None:
        """Stop every claim that has not ended."""
        for claim in self.running():
            claim.stop(stop)

    def kill_all(self) -> None:
        """End every training that is left."""
        for claim in self._claims.values():
            if handle := claim.handle():
                self._executor.cancel(handle, force=True)

    def wait(self, timeout_s: float) -> None:
        """Wait a moment for claims to end."""
        deadline = time.monotonic() + timeout_s
        for claim in self.running():
            claim.wait(deadline - time.monotonic())
