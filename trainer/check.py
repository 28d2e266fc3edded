"""Check training data in a process of its own.

Run as `python -m trainer.check CPU_SECONDS < FILE`. Prints `{"facts": {...}}` or `{"errors":
[[line, message], ...]}`. Beyond its CPU time the system ends it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import asdict

from trainer.formats import FormatError, check

MEMORY_BYTES = 1_000_000_000
LESS_URGENT = 10  # than the portal's pages


def main() -> None:
    cpu_s = int(sys.argv[1])
    os.nice(LESS_URGENT)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        print(json.dumps({"facts": asdict(check(sys.stdin.buffer))}))
    except FormatError as wrong:
        print(json.dumps({"errors": [[error.line, error.message] for error in wrong.errors]}))


if __name__ == "__main__":
    main()
