"""The first job of a new portal, all through REST.

Two values go in; a trained adapter and a lesson come out.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from rich.console import Console
from rich.status import Status

from client.foretune import Client, Job, Unavailable, Unreachable
from portal.ops.launch import terminal

MODEL = "builtin/tiny-llama"
ROWS = 400
NODE_S = 180.0  # until this machine's node has tested its speed and joined
LINE_EVERY_S = 10.0  # without a terminal, one line of progress this often


class FirstJob:
    """Uploads the corpus, submits, follows, reports. `stop` ends the following early."""

    def __init__(self, *, url: str, token: str, data: Path, console: Console, stop: Event) -> None:
        self.client, self.url, self.data = Client(url, token), url, data
        self.console, self.stop = console, stop

    def run(self) -> bool:
        """True if the job succeeded."""
        corpus = self.data / "demo" / "python-library.jsonl"
        subprocess.run(
            [sys.executable, "-m", "portal.ops.launch.sample_data", str(corpus), str(ROWS)], check=True
        )
        file = self.client.files.upload(corpus)
        self.wait_for_node()
        before = self.executions()
        job = self.client.jobs.submit(model=MODEL, training_file=file, name="First job")
        self.console.print(f"First job submitted: {MODEL} on {ROWS} docstrings of this Python ({job.id})")
        job = self.follow(job)
        if job.ended:
            self.report(job.raw, before)
        return job.state == "succeeded"

    def wait_for_node(self) -> None:
        """Return once a node is ready: recommendations depend on the nodes that exist.

        Raises TimeoutError.
        """
        end = time.monotonic() + NODE_S
        while time.monotonic() < end:
            with suppress(Unavailable, Unreachable):
                if any(node.raw["state"] == "ready" for node in self.client.nodes.list()):
                    return
            time.sleep(0.2)
        raise TimeoutError(f"no node became ready within {NODE_S:g} s; see the agent's log")

    def executions(self) -> int:
        return int(self.client.request("GET", "executions/", query={"limit": 1})["total"])

    def follow(self, job: Job) -> Job:
        """Show the job until it has ended.

        On a terminal it is a live line, else a line now and then.
        """
        with Status("", console=self.console) as status:
            shown_state, shown_at = "", 0.0
            while True:
                with suppress(Unavailable, Unreachable):
                    job = job.refresh()
                line, now = terminal.progress_line(job.raw), time.monotonic()
                status.update(line)
                if job.ended or self.stop.is_set():
                    return job
                changed = job.internal_state != shown_state or now - shown_at > LINE_EVERY_S
                if changed and not self.console.is_terminal:
                    self.console.print(line)
                    shown_state, shown_at = job.internal_state, now
                self.stop.wait(0.5)

    def report(self, job: Mapping[str, Any], executions_before: int) -> None:
        say = self.console.print
        if not job["first_started_at"]:
            return say(f"The job {job['state']}: {(job['error'] or {}).get('message', 'no reason given')}")
        say(terminal.configuration(job))
        say(terminal.comparison(job))
        if job["state"] != "succeeded":
            return say(f"The job {job['state']}: {(job['error'] or {}).get('message', 'no reason given')}")
        say(f"Loss      {terminal.loss(job)}")
        say(f"Adapter   {self.data / 'artifacts' / job['id']}", soft_wrap=True)
        say(f"Page      {self.url}/jobs/{job['id']}/", soft_wrap=True)
        return say(f"History   {executions_before:,} -> {self.executions():,} executions")
