"""One claim on this node, from its order to its end, in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from trainer.agent.claims.checkpoints import NODE, CheckpointUploader
from trainer.agent.claims.collect import Collector
from trainer.agent.claims.deliver import deliver
from trainer.agent.claims.outcome import ClaimEnd, Stop, classify_end
from trainer.agent.claims.prepare import RunPreparation, check_spec, prepare
from trainer.agent.claims.rendezvous import Rendezvous
from trainer.agent.claims.store import ClaimRecord
from trainer.agent.claims.watch import Watch
from trainer.agent.errors import CheckpointGone, Declined, InputLost, Interrupted, PeerAway, StaleClaim
from trainer.agent.executors.base import Executor, Handle, LocalGpus, OwnQueue, Waiting
from trainer.agent.node.gpu_idle import await_vacancy
from trainer.agent.node.usage import Load
from trainer.agent.portal_api.client import Portal
from trainer.agent.portal_api.transfers import Transfers
from trainer.agent.storage.folder import CHECKPOINTS, TOKENS, read_json, write_json
from trainer.agent.storage.spool import Spool
from trainer.protocol import GONE, ClaimOrder, ClaimState, Outcome, Phase, ReportKind, Spec

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.2
LONGEST_REASON = 300  # of a wait
FORGET = Stop(grace_s=5.0, wanted_files=False, forget=True)


class NodeClaim:
    """A claim as the agent's loop sees it.

    holder: names another claim whose training is still on this one's GPUs. changed: called when the portal
    should hear at once.
    """

    def __init__(
        self,
        record: ClaimRecord,
        *,
        portal: Portal,
        executor: Executor,
        workshop: RunPreparation,
        holder: Callable[[Spec], str],
        changed: Callable[[], None],
    ) -> None:
        self.spec, self._holder = record.spec, holder
        self._record, self._executor, self._workshop, self._changed = record, executor, workshop, changed
        self._spool = Spool(record.spool / "reports.jsonl")
        self._rendezvous = Rendezvous(record, self._spool, workshop.site, changed)
        self._stop: Stop | None = None
        self._cancelled = False
        self._waits_for = ""
        self._stopping, self._given_up = threading.Event(), threading.Event()
        self._transfers = Transfers(portal, self.spec, self._given_up)
        self._collector = Collector(record.run, self._spool)
        self._uploader = CheckpointUploader(self.spec, record.run, self._spool, self._transfers, changed)
        self._thread: threading.Thread | None = None
        self._ids = {"claim": self.spec.claim, "job": self.spec.job}

    def start(self) -> None:
        """Go on with the claim, from wherever it is."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"claim {self.spec.claim}", daemon=True)
            self._thread.start()

    @property
    def was_launched(self) -> bool:
        """A training was started, by this agent or an earlier one."""
        return self._record.process_file.exists()

    @property
    def _phase(self) -> Phase:
        """Running from the moment that the model is loaded and the data is counted.

        Queued from its first moment on where the executor has a queue: no phase is gone back to.
        """
        if self._record.ending is not None:
            return Phase.DELIVERING
        if ReportKind.START in self._spool.kinds:
            return Phase.RUNNING
        return Phase.QUEUED if self._is_queued else Phase.STARTING

    @property
    def _is_queued(self) -> bool:
        return isinstance(self._executor, OwnQueue) and not self._record.began

    @property
    def busy(self) -> bool:
        """Has the claim's thread something left to do?"""
        return self._thread is not None and self._thread.is_alive()

    def handle(self) -> Handle | None:
        """How the executor finds the training, while there is one."""
        if self._record.ending or not self.was_launched:
            return None
        return Handle(self.spec.claim, read_json(self._record.process_file) or {})

    def load(self) -> Load | None:
        """The training's use of the node."""
        handle = self.handle()
        return self._executor.load(handle) if handle else None

    def apply(self, order: ClaimOrder) -> None:
        """Do what the portal's answer says of this claim."""
        if order.error == "stale_attempt":
            return self.stop(FORGET)
        if order.error:  # the portal skips what it refuses: acked_seq has gone past it
            log.error("the portal refused a report", extra={**self._ids, "detail": order.detail})
        self._spool.acknowledge(order.acked_seq)
        self._rendezvous.learn(order.rendezvous)
        if order.want == "stop":
            cancelled = order.stop_for == "cancel"
            reason = f"stopped on request ({order.stop_for})" if order.stop_for else "stopped on request"
            self.stop(Stop(reason=reason, grace_s=order.grace_s, wanted_files=not cancelled))
        return self.start()

    def stop(self, stop: Stop) -> None:
        """Stop the training. A later call may only make it more urgent."""
        if self._stop is None or _urgency(stop) > _urgency(self._stop):
            self._stop = stop
            if self.busy:
                log.info(
                    "claim is to stop", extra={**self._ids, "reason": stop.reason or "not ours any more"}
                )
        if not stop.wanted_files:
            self._given_up.set()
            self._cancelled |= not stop.forget
        self._stopping.set()

    def state(self, limit: int, limit_bytes: int) -> ClaimState:
        """The claim's state for the portal; the end only together with the last report."""
        ending = self._record.ending if self._record.ended else None
        forgotten = self._stop is not None and self._stop.forget
        reports = () if forgotten else self._spool.pending(limit, limit_bytes)
        phase = self._phase
        state = ClaimState(
            claim=self.spec.claim,
            fence=self.spec.fence,
            phase=phase,
            reason=self._waits_for if phase is Phase.QUEUED else "",
            reports=reports,
        )
        if ending is None or len(reports) < self._spool.backlog:
            return state
        return replace(
            state,
            phase=Phase.ENDED,
            outcome=ending.outcome,
            exit_code=ending.exit_code,
            reason=ending.reason,
        )

    def dispose(self) -> bool:
        """Forget a claim that is not ours any more.

        Returns False while something of it still runs.
        """
        if self._stop is None or not self._stop.forget or self.busy:
            return False
        self._record.folder.forget(self.spec.claim, keep=set(self._for_another_attempt()))
        return True

    def _for_another_attempt(self) -> Iterator[str]:
        """Checkpoints of the run from which another attempt on this node may go on."""
        if self._job_is_over:
            return
        if NODE in self._spool.checkpoints.values():
            yield CHECKPOINTS
        if self._record.ending and self._record.ending.outcome != Outcome.ERROR:
            yield TOKENS

    @property
    def _job_is_over(self) -> bool:
        """Is the job over, so that no attempt goes on from its checkpoints?"""
        ending = self._record.ending
        return self._cancelled or (ending is not None and ending.outcome == Outcome.SUCCEEDED)

    def wait(self, timeout_s: float) -> None:
        """Wait for the claim's end."""
        if self._thread is not None:
            self._thread.join(max(0.0, timeout_s))

    def _work(self) -> None:
        """Work on the claim, in its thread.

        In every case, the portal hears how the claim ended and no process is left.
        """
        try:
            self._live()
        except Interrupted:
            self._end(self._stopped_early())
        except StaleClaim:
            self.stop(FORGET)
        except Declined as error:
            self._end(ClaimEnd(outcome=Outcome.DECLINED, reason=str(error)))
        except InputLost as error:
            if isinstance(error, CheckpointGone) and self.spec.resume:
                self._spool.add(ReportKind.CHECKPOINT, {"step": self.spec.resume.step, "stored": GONE})
            self._end(ClaimEnd(outcome=error.outcome, reason=str(error)))
        except PeerAway as error:
            self._end(ClaimEnd(outcome=Outcome.LOST, reason=str(error)))
        except Exception as error:
            log.exception("claim failed on this node", extra=self._ids)
            if handle := self.handle():
                self._executor.cancel(handle, force=True)
            outcome = Outcome.LOST if self.was_launched else Outcome.DECLINED
            self._end(ClaimEnd(outcome=outcome, reason=f"the node could not go on: {error}"[:500]))
        self._changed()

    def _live(self) -> None:
        if self._record.ended:
            return
        if self._record.ending is None:
            self._record.ending = self._train()
            self._save()
            self._changed()  # the GPUs are free
        # Cancelled while its files were on their way: they are not wanted and neither is the success.
        self._end(deliver(self._record, self._spool, self._transfers, self._uploader, self._given_up))

    def _train(self) -> ClaimEnd:
        handle = self.handle() or self._launch()
        watch = Watch(self.spec, self._record.run, handle, self._executor, self._collector)
        self._uploader.wake()
        while (evidence := watch.look(self._stop)) is None:
            self._note(watch.seen)
            self._note_queue(watch.waiting)
            if self._stop is None:
                self._stopping.wait(LOOK_EVERY_S)
            else:
                time.sleep(LOOK_EVERY_S / 2)
        self._note(watch.seen)
        return classify_end(replace(evidence, begun=self._phase is Phase.RUNNING))

    def _launch(self) -> Handle:
        """Fetch, write down that a training is about to start, start it, write down which."""
        check_spec(self.spec, self._workshop)
        self._transfers.fetch_inputs(self._record.run, self._stopping)
        self._await_vacancy()
        spec = self._rendezvous.spec_with_address(self._stopping)
        launch = prepare(spec, self._workshop, self._record.run)
        if self._stopping.is_set():
            raise Interrupted("stopped before it was started")
        begun = self._executor.begin(self.spec.claim)
        write_json(self._record.process_file, begun.notes)
        try:
            handle = self._executor.submit(launch, begun)
        except OSError as error:
            raise Declined(f"the training could not be started: {error}") from error
        write_json(self._record.process_file, handle.notes)
        log.info("training started", extra={**self._ids, "handle": handle.notes})
        return handle

    def _await_vacancy(self) -> None:
        """Wait until nobody else is on the GPUs, where they are this machine's.

        Raises Declined.

        The portal gives away the GPUs of a training that lost another node before this one has stopped it.
        """
        executor, gpus = self._executor, self._workshop.held(self.spec)
        if isinstance(executor, LocalGpus):
            await_vacancy(lambda: self._holder(self.spec) or executor.occupant(gpus), self._stopping)

    def _note_queue(self, waiting: Waiting | None) -> None:
        """Tell why it waits in the queue of its executor.

        That it left that is kept for a later agent.
        """
        if waiting is not None:
            self._waits_for = waiting.reason[:LONGEST_REASON]
        elif self._is_queued:
            self._record.began = True
            self._save()
            self._changed()

    def _note(self, seen: set[ReportKind]) -> None:
        if ReportKind.START in seen:
            self._changed()
        if ReportKind.CHECKPOINT in seen:
            self._uploader.wake()

    def _stopped_early(self) -> ClaimEnd:
        stop = self._stop or Stop()
        return self._record.ending or ClaimEnd(outcome=stop.outcome, reason=stop.reason)

    def _end(self, ending: ClaimEnd) -> None:
        self._record.ending, self._record.ended = ending, True
        self._save()
        log.info("claim ended", extra={**self._ids, "outcome": ending.outcome, "reason": ending.reason})

    def _save(self) -> None:
        """Save the claim if the disk has room.

        A full disk keeps no claim from ending; the training's own files tell a later agent the same.
        """
        try:
            self._record.save()
        except OSError as error:
            log.error("the record of a claim was not written", extra={**self._ids, "error": str(error)})


def _urgency(stop: Stop) -> tuple[bool, bool]:
    return stop.forget, not stop.wanted_files
