"""Requests per second of CPU time: the portal's web server and gunicorn's own.

    python -m benchmarks.portal.serving [--seconds 5] [--rounds 3]

The portal's web server and gunicorn's threaded worker take turns. Sixteen clients keep their
connections and ask for the sign-in page and for a small static file.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil

from portal.ops.launch import preflight
from tests.harness.servers import free_port

CLIENTS = 16
PATHS = ("/login/", "/static/js/charts.js")
WORKERS = {"ours": "portal.serving.worker.Worker", "gthread": "gthread"}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "DATA_DIR": folder, "OMP_NUM_THREADS": "1"}
        for command in ("migrate", "collectstatic"):
            words = [sys.executable, "manage.py", command, "-v", "0", "--noinput"]
            subprocess.run(words, env=env, check=True)
        for path in PATHS:
            rates: dict[str, list[float]] = {name: [] for name in WORKERS}
            for _ in range(options.rounds):
                for name, worker in WORKERS.items():
                    with served(worker, env) as (port, server):
                        before = cpu_s(server)
                        answers = asked(port, path, options.seconds)
                        rates[name].append(answers / (cpu_s(server) - before))
            ours, theirs = (median(rates[name]) for name in WORKERS)
            line = f"{path}: {ours:.0f} requests a CPU second, gthread {theirs:.0f}"
            print(f"{line}: {ours / theirs:.2f}", flush=True)


@contextmanager
def served(worker: str, env: dict[str, str]) -> Iterator[tuple[int, psutil.Process]]:
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "portal.wsgi", "-c", "python:portal.configuration.gunicorn"]
    command += [f"--bind=127.0.0.1:{port}", f"--worker-class={worker}", "--workers=2", "--log-level=warning"]
    process = subprocess.Popen(command, env=env, cwd=Path(__file__).parents[2])
    try:
        preflight.wait_until_served(f"http://127.0.0.1:{port}")
        yield port, psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


def cpu_s(server: psutil.Process) -> float:
    """Of all its processes so far: on a busy machine the clock tells how busy it is."""
    times = [process.cpu_times() for process in (server, *server.children())]
    return float(sum(time.user + time.system for time in times))


def asked(port: int, path: str, seconds: float) -> int:
    """Answers to all clients together."""
    end, counts = time.monotonic() + seconds, [0] * CLIENTS
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def ask(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            while time.monotonic() < end:
                sock.sendall(request)
                answer = sock.recv(65536)
                head, _, body = answer.partition(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                while len(body) < size:
                    body += sock.recv(65536)
                counts[number] += head.startswith(b"HTTP/1.1 200")

    clients = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return sum(counts)


if __name__ == "__main__":
    main()
