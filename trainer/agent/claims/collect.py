"""Reports from a training's files.

They are made of new lines of events.jsonl and new pieces of log.txt.
"""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path
from typing import Any

from trainer.agent.storage.folder import read_inside
from trainer.agent.storage.spool import EVENTS, LOG, Spool
from trainer.agent.storage.text import clean_text, parse_object
from trainer.protocol import MAX_LOG_BYTES, ReportKind

log = logging.getLogger(__name__)

PIECE_BYTES = 8_000
LOG_EVERY_S = 1.0
MAX_EVENT_BYTES = 16_000
MAX_BACKLOG = 20_000  # reports; beyond it, single steps are left out
READ_BYTES = 1_000_000
# The agent reports these itself, after it has uploaded what they name.
_UNTIL_UPLOADED = {ReportKind.CHECKPOINT, ReportKind.RESULT, ReportKind.LOG}


class Collector:
    """Reader of the two files of one claim.

    It starts where the spool says that they were left.
    """

    def __init__(self, run: Path, spool: Spool) -> None:
        self._run, self._spool = run, spool
        self._position = spool.offset(EVENTS)
        self._log_due = 0.0

    def events(self) -> list[tuple[ReportKind, dict[str, Any]]]:
        """Report the whole lines that came since; returns them all, in order.

        Raises OSError if the spool cannot be written; the same lines come again next time.
        """
        try:
            data = read_inside(self._run, "events.jsonl", self._position, READ_BYTES)
        except FileNotFoundError:
            return []
        found = []
        for line in io.BytesIO(data):
            if not line.endswith(b"\n") and len(line) < READ_BYTES:
                break  # its rest comes with the next piece; a line longer than a piece is no event
            end = self._position + len(line)
            event = _parse(line)
            if event is not None:
                self._report(*event, end)
                found.append(event)
            self._position = end
        return found

    def rest(self) -> list[tuple[ReportKind, dict[str, Any]]]:
        """All that is left in both files once the training is over."""
        found, before = [], -1
        while before != self._position:
            before = self._position
            found += self.events()
        self.log(everything=True)
        return found

    def _report(self, kind: ReportKind, body: dict[str, Any], end: int) -> None:
        flooded = kind in {ReportKind.STEP, ReportKind.MEMORY} and self._spool.backlog > MAX_BACKLOG
        if kind not in _UNTIL_UPLOADED and not flooded:
            self._spool.add(kind, body, EVENTS, end)

    def log(self, *, everything: bool = False) -> None:
        """Report the next piece of the log.

        Of a flood only the newest piece is reported, with a mark where it was cut.
        everything: the training is over, so the rest is reported in several pieces.
        """
        if time.monotonic() < self._log_due and not everything:
            return
        self._log_due = time.monotonic() + LOG_EVERY_S
        while self._log_piece() and everything:
            pass

    def _log_piece(self) -> bool:
        delivered = start = self._spool.offset(LOG)
        size = log_size(self._run)
        if size - delivered > MAX_LOG_BYTES:  # more than this rate can deliver: go on from the newest
            start = size - PIECE_BYTES
        data = _read_log(self._run, start)
        if not data:
            return False
        if size > start + len(data) and b"\n" in data:
            data = data[: data.rindex(b"\n") + 1]
        text = clean_text(data.decode("utf-8", "replace"), MAX_LOG_BYTES)
        if start > delivered:
            text = f"[... {start - delivered} bytes left out here; log.txt has them ...]\n{text}"
        self._spool.add(ReportKind.LOG, {"text": text}, LOG, start + len(data))
        return True


def log_size(run: Path) -> int:
    """Bytes in log.txt so far."""
    try:
        return (run / "log.txt").lstat().st_size
    except OSError:
        return 0


def _read_log(run: Path, offset: int) -> bytes:
    """A piece of log.txt; empty when there is no more."""
    try:
        return read_inside(run, "log.txt", offset, PIECE_BYTES)
    except OSError:
        return b""


def _parse(line: bytes) -> tuple[ReportKind, dict[str, Any]] | None:
    """One event, or None for a line that the portal could not take."""
    try:
        body = parse_object(line, MAX_EVENT_BYTES)
        return ReportKind(body.pop("kind", None)), body
    except ValueError as error:
        log.warning("an event of the training is left out", extra={"error": f"{error}"[:200]})
        return None


def last_line(run: Path) -> str:
    """The last line of the log that says something: most often the exception."""
    text = _read_log(run, max(0, log_size(run) - PIECE_BYTES)).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return clean_text(lines[-1], 500) if lines else ""
