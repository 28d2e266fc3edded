"""Every decision that was kept, made again after the faults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.harness.invariants import Violation

REPOSITORY = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "manage.py", "replay_decision", "--all"]


def replayed(env: Mapping[str, str]) -> list[Violation]:
    """One violation for each decision whose plan is another one now.

    env: the portal's own
    """
    done = subprocess.run(COMMAND, cwd=REPOSITORY, env=dict(env), capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    print(lines[-1] if lines and not done.returncode else done.stderr.strip(), flush=True)
    odd = [line for line in lines if line.endswith(": differs") or "cannot be made again" in line]
    if done.returncode and not odd:
        odd = [done.stderr.strip()]
    return [Violation("-", "a kept decision is made again", line, "") for line in odd]
