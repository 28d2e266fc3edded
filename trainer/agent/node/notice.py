"""Is this machine about to be taken back by whom it is rented from?"""

from __future__ import annotations

import logging
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path

from trainer.protocol import LONGEST_NOTICE_S

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
COMMAND_FOR_S = 4.0
USUAL_S = 120.0  # where the notice says no number
READ_BYTES = 1000


class NoticeWatch:
    """Looks every few seconds, on a thread of its own.

    So no slow command holds up a sync.
    source: a command that ends with 0 once there is a notice, or a file that is there then.
    """

    def __init__(self, source: str) -> None:
        words = shlex.split(source)
        self._command = words if len(words) > 1 or shutil.which(source) else None
        self._file = Path(source)
        self._ends: float | None = None
        self._announced: float | None = None  # the number of seconds that the notice said last

    def start(self, changed: Callable[[], object]) -> None:
        """Look for as long as this process lives.

        `changed` is called when a notice comes or goes.
        """
        threading.Thread(target=self._watch, args=(changed,), daemon=True, name="notice").start()

    def left_s(self) -> float | None:
        """Seconds until the machine is taken back; None without a notice."""
        ends = self._ends
        return None if ends is None else max(0.0, ends - time.monotonic())

    def look(self) -> None:
        """Look once."""
        try:
            said = self._run(self._command) if self._command else self._read()
        except (OSError, subprocess.TimeoutExpired) as error:  # neither a notice nor its end
            log.warning("--notice cannot be looked at", extra={"error": str(error)[:300]})
            return
        if said is None:
            self._ends = self._announced = None
            return
        seconds = _seconds(said)
        if self._ends is None or (seconds is not None and seconds != self._announced):
            self._ends = time.monotonic() + (USUAL_S if seconds is None else seconds)
        self._announced = seconds

    def _watch(self, changed: Callable[[], object]) -> None:
        while True:
            before = self._ends is None
            self.look()
            if (self._ends is None) != before:
                log.warning("a notice of withdrawal" if before else "the notice is gone")
                changed()
            time.sleep(LOOK_EVERY_S)

    def _read(self) -> str | None:
        try:
            with self._file.open("rb") as file:
                return file.read(READ_BYTES).decode(errors="replace")
        except FileNotFoundError:
            return None

    @staticmethod
    def _run(command: Sequence[str]) -> str | None:
        """The command's answer; None where it says that there is no notice."""
        done = subprocess.run(
            command, capture_output=True, timeout=COMMAND_FOR_S, stdin=subprocess.DEVNULL, check=False
        )
        return done.stdout[:READ_BYTES].decode(errors="replace") if done.returncode == 0 else None


def _seconds(said: str) -> float | None:
    words = said.split()
    try:
        seconds = float(words[0]) if words else None
    except ValueError:
        return None
    if seconds is None or not isfinite(seconds):
        return None
    return min(LONGEST_NOTICE_S, max(0.0, seconds))
