"""Watch of a running training, one look after another.

It covers the events, the log, the end, and stopping it.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from trainer.agent.claims.collect import Collector, last_line
from trainer.agent.claims.outcome import ExitFacts, Stop
from trainer.agent.executors.base import End, Executor, Handle, OwnLog, OwnQueue, Waiting
from trainer.agent.storage.folder import read_inside
from trainer.agent.storage.text import clean_text, parse_object
from trainer.protocol import ReportKind, Spec

log = logging.getLogger(__name__)

RESULT_BYTES = 1_000_000


def read_result(run: Path) -> dict[str, Any] | None:
    """RUN/result.json, or None where there is none that can be used."""
    try:
        return parse_object(read_inside(run, "result.json", 0, RESULT_BYTES + 1), RESULT_BYTES)
    except (OSError, ValueError):
        return None


class Watch:
    """Follows one training to its end."""

    def __init__(
        self, spec: Spec, run: Path, handle: Handle, executor: Executor, collector: Collector
    ) -> None:
        self._spec, self._run, self._handle = spec, run, handle
        self._executor, self._collector = executor, collector
        self._last_sign = time.monotonic()
        self._stop_began: float | None = None
        self._killed_after_grace = False
        self._silent_s: float | None = None
        self.seen: set[ReportKind] = set()  # kinds of events since the last look
        # In the queue of the executor, where it has one, as the last look saw it.
        self.waiting: Waiting | None = Waiting() if isinstance(executor, OwnQueue) else None

    def look(self, stop: Stop | None) -> ExitFacts | None:
        """Look for news once.

        Returns the evidence once the training is over and nothing of it is left.
        """
        ended = self._executor.poll(self._handle)
        self._collect()
        if ended is not None:
            return self._conclude(ended, stop)
        if self.waiting and isinstance(self._executor, OwnQueue):
            self.waiting = self._executor.waiting(self._handle)
        self._press(stop)
        return None

    def _collect(self) -> None:
        """Collect new reports from the files.

        A full disk must not end a training: the same lines are read again at the next look.
        """
        try:
            self.seen = {kind for kind, _ in self._collector.events()}
            self._collector.log()
        except OSError as error:
            log.error("reports wait for disk space", extra={"claim": self._spec.claim, "error": str(error)})
        if self.seen:
            self._last_sign = time.monotonic()

    def _press(self, stop: Stop | None) -> None:
        """Ask to stop, insist after the grace, and end what shows no sign of life.

        What waits in a queue of the executor's can give none.
        """
        now = time.monotonic()
        if self.waiting:
            self._last_sign = now
        if stop is not None and self._stop_began is None:
            self._stop_began = now
            self._executor.cancel(self._handle, force=False)
        if stop is not None and self._stop_began is not None and now - self._stop_began >= stop.grace_s:
            self._killed_after_grace = True
            self._executor.cancel(self._handle, force=True)
        elif stop is None and now - self._last_sign >= self._spec.hang_after_s:
            self._silent_s = self._spec.hang_after_s
            self._executor.cancel(self._handle, force=True)

    def _conclude(self, ended: End, stop: Stop | None) -> ExitFacts:
        self._executor.cancel(self._handle, force=True)  # whatever it left behind, also in other sessions
        try:
            self.seen |= {kind for kind, _ in self._collector.rest()}
        except OSError as error:
            log.error("last reports are lost", extra={"claim": self._spec.claim, "error": str(error)})
        return ExitFacts(
            end=ended,
            result=read_result(self._run),
            stop=stop,
            killed_after_grace=self._killed_after_grace,
            silent_s=self._silent_s,
            last_line=last_line(self._run) or self._words(),
            nodes=self._spec.nodes,
        )

    def _words(self) -> str:
        """What the executor says of a training that printed nothing."""
        executor = self._executor
        return clean_text(executor.log(self._handle), 500) if isinstance(executor, OwnLog) else ""
