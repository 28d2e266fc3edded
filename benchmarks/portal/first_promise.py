"""How well a fresh portal promises its first job.

python -m benchmarks.portal.first_promise [--runs 3] [--port 8765]

Makes a portal from nothing by `run.py --once`, once with and once without a speed test of its node in turn,
and prints the promise of the first job beside what it took, with the processors that everything on this
machine kept busy meanwhile: a promise can be judged on a quiet machine only. Aim there: the duration within
20 %, its interval within a factor of two. A run takes about two minutes.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
FIRST = (
    "SELECT predicted, runtime_s, tokens_per_second, startup_s FROM knowledge_execution"
    " WHERE predicted IS NOT NULL"
)
TESTED = "SELECT tokens_per_second FROM knowledge_execution WHERE origin = 'speed test' ORDER BY id DESC"
HEADER = (
    *("", "duration promised", "interval", "factor", "taken", "off"),
    *("tokens/s promised", "measured", "off", "start-up promised", "taken", "test", "busy cores"),
)


@dataclass(frozen=True, slots=True)
class FirstJob:
    """The first job of one portal.

    test: tokens/s of the last shape of the node's speed test.
    busy: cores that all processes together kept busy.
    """

    promise: dict[str, Any]
    duration_s: float
    rate: float
    startup_s: float
    test: float | None
    busy: float

    def cells(self, name: str) -> Iterator[str]:
        """The columns of `HEADER`."""
        duration, rate = self.promise["duration_s"], self.promise["tokens_per_second"]
        yield from (name, f"{duration['value']:.0f} s", f"{duration['low']:.0f} to {duration['high']:.0f}")
        yield from (f"{duration['high'] / duration['low']:.2f}", f"{self.duration_s:.0f} s")
        yield f"{self.duration_s / duration['value'] - 1:+.0%}"
        yield from (f"{rate['value']:,.0f}", f"{self.rate:,.0f}", f"{self.rate / rate['value'] - 1:+.0%}")
        yield from (f"{self.promise['startup_s']:.1f} s", f"{self.startup_s:.1f} s")
        yield from (f"{self.test:,.0f}" if self.test else "-", f"{self.busy:.1f}")


def first_job(port: int, *options: str) -> FirstJob:
    """Make a portal from nothing, let it train and read what became of the promise."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "run.py", "--once", "--port", str(port), "--data", data, *options]
        psutil.cpu_percent()
        subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
        busy = psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)
        with closing(sqlite3.connect(Path(data) / "portal.sqlite3")) as database:
            promise, duration_s, rate, startup_s = database.execute(FIRST).fetchone()
            tested = database.execute(TESTED).fetchone()
    return FirstJob(json.loads(promise), duration_s, rate, startup_s, tested[0] if tested else None, busy)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown, a line for each portal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.portal.first_promise", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--port", type=int, default=8765)
    given = parser.parse_args(arguments)
    print("|", " | ".join(HEADER), "|\n|", " | ".join("---" for _ in HEADER), "|")
    for _ in range(given.runs):
        for name, options in (("without a test", ("--no-speed-test",)), ("with a test", ())):
            print("|", " | ".join(first_job(given.port, *options).cells(name)), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
