"""CPU time that the command line takes to start, as a multiple of `python -c pass`.

    python -m benchmarks.client.start [--program foretune] [--runs 15]

`foretune ls` asks a portal that answers at once, on this machine. Figures are medians; the aims are 12 for
`--help` and 30 for `ls`. It exits with 1 where they are missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = json.dumps({"data": [], "total": 0, "has_more": False, "next": None}).encode()
MOST = {"foretune --help": 12.0, "foretune ls": 30.0}


class Portal(BaseHTTPRequestHandler):
    """A portal without jobs."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def cpu_s(command: list[str], env: dict[str, str]) -> float:
    """User and system time of one run, in seconds. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", default="", help="the installed command; else that of this tree")
    parser.add_argument("--python", default=sys.executable, help="what `pass` is measured with")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    portal = ThreadingHTTPServer(("127.0.0.1", 0), Portal)
    threading.Thread(target=portal.serve_forever, daemon=True).start()
    program = [options.program] if options.program else [options.python, "-m", "foretune"]
    env = {
        **os.environ,
        "FORETUNE_URL": f"http://127.0.0.1:{portal.server_port}",
        "FORETUNE_TOKEN": "ft-benchmark",
        **({} if options.program else {"PYTHONPATH": "client"}),
    }
    commands = {
        "python -c pass": [options.python, "-c", "pass"],
        "foretune --help": [*program, "--help"],
        "foretune ls": [*program, "ls"],
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(options.runs + 1):  # the first run of each writes byte code
        for name, command in commands.items():
            took[name].append(cpu_s(command, env))
    medians = {name: statistics.median(times[1:]) for name, times in took.items()}
    print(f"| {'':16} | CPU ms | times |\n| --- | ---: | ---: |")
    for name, median in medians.items():
        print(f"| {name:16} | {median * 1000:6.0f} | {median / medians['python -c pass']:5.1f} |")
    sys.exit(any(medians[name] > most * medians["python -c pass"] for name, most in MOST.items()))


if __name__ == "__main__":
    main()
