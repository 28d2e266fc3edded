"""Checking of an upload.

A small one is checked at once, a large one in a process of its own, within a bound on its time.
A file of the largest size can take minutes to read, in which no thread of the web process has
its turn.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from portal.turns import Turns
from scheduler.errors import BadFile
from trainer import formats

SMALL_BYTES = 1_000_000
CPU_S = 60  # of the check; 2 GB of usual rows take 25
READ_IN_TIME = 3_000_000  # rows, however short, on a machine of half the usual speed
WALL_S = 180.0
turns = Turns(
    at_once=2, waiting=2, patience_s=WALL_S, busy="Other uploads are being checked; send yours again later."
)
TOO_COSTLY = f"the file takes more than {CPU_S} s to read; split it into files of {READ_IN_TIME:,} rows"


def check(path: Path) -> formats.FileFacts:
    """Check a file and describe its content.

    Raises BadFile with the first wrong lines, and TooBusy.
    """
    if path.stat().st_size <= SMALL_BYTES:
        return _here(path)
    with turns.take():
        answer = _beside(path)
    if "errors" in answer:
        raise BadFile([(int(line), str(message)) for line, message in answer["errors"]])
    facts = answer["facts"]
    lengths = tuple((size, rows) for size, rows in facts.pop("lengths"))
    return formats.FileFacts(**{**facts, "lengths": lengths, "unused": tuple(facts["unused"])})


def _here(path: Path) -> formats.FileFacts:
    try:
        with path.open("rb") as lines:
            return formats.check(lines)
    except formats.FormatError as wrong:
        raise BadFile([(error.line, error.message) for error in wrong.errors]) from wrong


def _beside(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "trainer.check", str(CPU_S)]
    try:
        with path.open("rb") as lines:
            done = subprocess.run(
                command, stdin=lines, capture_output=True, timeout=WALL_S, cwd=settings.BASE_DIR, check=True
            )
    except subprocess.TimeoutExpired as slow:
        raise BadFile([(0, TOO_COSTLY)]) from slow
    except subprocess.CalledProcessError as ended:
        if -ended.returncode in (signal.SIGXCPU, signal.SIGKILL):
            raise BadFile([(0, TOO_COSTLY)]) from ended
        raise
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
