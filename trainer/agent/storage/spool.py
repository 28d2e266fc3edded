"""Numbered reports of one claim, on disk until the portal has them.

Each line of reports.jsonl is one report: its number, kind and body, and how far its source had been read.
Report and position are one write, so that an agent that is killed between two of them neither loses nor
doubles a report.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from pathlib import Path
from typing import Any

from trainer.protocol import Report, ReportKind

log = logging.getLogger(__name__)

EVENTS, LOG, AGENT = "events", "log", "agent"  # sources of reports


class Spool:
    """Store that appends reports and hands out those that the portal lacks.

    Safe to use from several threads.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._pending: deque[tuple[Report, int]] = deque()
        self._last = 0
        self._acked: int | None = None
        self._offsets = {EVENTS: 0, LOG: 0, AGENT: 0}
        self._checkpoints: dict[int, str] = {}  # step -> where it is stored
        self.kinds: set[ReportKind] = set()  # kinds of all reports ever made
        self._size = self._load()
        self._loaded = self._last  # the last number that an earlier agent left

    def _load(self) -> int:
        """Read what an earlier agent wrote; returns the bytes up to the last whole line."""
        size = 0
        if not self._path.exists():
            return size
        with self._path.open("rb") as file:
            for line in file:
                try:
                    if not line.endswith(b"\n"):
                        raise ValueError("the line is not whole")
                    self._remember(json.loads(line), len(line))
                except (ValueError, KeyError):
                    log.warning("reports end in a broken line", extra={"file": self._path, "byte": size})
                    break
                size += len(line)
        return size

    def _remember(self, entry: dict[str, Any], size: int) -> None:
        self._last = entry["seq"]
        self._offsets[entry["source"]] = entry["offset"]
        report = Report(seq=entry["seq"], kind=ReportKind(entry["kind"]), body=entry["body"])
        if report.kind == ReportKind.CHECKPOINT:
            self._checkpoints[int(report.body["step"])] = str(report.body["stored"])
        self.kinds.add(report.kind)
        self._pending.append((report, size))

    def add(self, kind: ReportKind, body: dict[str, Any], source: str = AGENT, offset: int = 0) -> None:
        """Append a report. offset: where the next reading of the source starts.

        Raises OSError if the disk takes no more; nothing is recorded then.
        """
        with self._lock:
            self._append(kind, body, source, offset)

    def _append(self, kind: ReportKind, body: dict[str, Any], source: str, offset: int) -> None:
        entry = {"seq": self._last + 1, "kind": kind, "body": body, "source": source, "offset": offset}
        line = json.dumps(entry).encode() + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # From the last whole line on: a piece that a full disk cut off is overwritten.
            os.ftruncate(descriptor, self._size)
            if os.pwrite(descriptor, line, self._size) < len(line):
                raise OSError("the disk is full")
        finally:
            os.close(descriptor)
        self._size += len(line)
        self._remember(entry, len(line))

    def offset(self, source: str) -> int:
        """How far a source has been reported."""
        return self._offsets[source]

    @property
    def checkpoints(self) -> dict[int, str]:
        """Reported checkpoints: step -> `portal` or `node`."""
        with self._lock:
            return dict(self._checkpoints)

    @property
    def backlog(self) -> int:
        """How many reports the portal lacks."""
        return len(self._pending)

    def acknowledge(self, seq: int) -> None:
        """Note that the portal has everything up to `seq`.

        That is less than before if it was restored from a backup.
        """
        with self._lock:
            if seq < (self._acked or 0):
                self._pending.clear()
                self._size = self._load()
            if seq > self._loaded and self._acked is None:
                self._go_on_after(seq)
            self._acked = seq
            while self._pending and self._pending[0][0].seq <= self._acked:
                self._pending.popleft()

    def _go_on_after(self, seq: int) -> None:
        """Continue numbering after `seq`, where the portal has more than the disk.

        The machine lost its power before all was written. Reports added since would be taken
        for known under numbers that are used, so they are numbered anew.
        """
        new = [report for report, _ in self._pending if report.seq > self._loaded]
        self._last = seq
        for report in new:
            self._append(report.kind, report.body, AGENT, 0)

    def pending(self, limit: int, limit_bytes: int) -> tuple[Report, ...]:
        """Return the first reports that the portal lacks, in order.

        None are returned before the portal said which it has.
        """
        with self._lock:
            chosen: list[Report] = []
            if self._acked is None:
                return ()
            for report, size in self._pending:
                limit_bytes -= size
                if len(chosen) >= limit or (chosen and limit_bytes < 0):
                    break
                chosen.append(report)
            return tuple(chosen)
