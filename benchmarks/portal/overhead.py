"""The portal's overhead on a training.

python -m benchmarks.portal.overhead [--jobs 3] [--steps 400]

Starts a real portal with default leases and ticks, runs real jobs one after another, and prints

- the time from submission to the start of the training process, whose own start-up comes on top
  (aim: below 2 s);
- the time from the end of the training process to the end of the job, with the uploads in between;
- CPU time while a training ran, as a share of one core: the agent's, which a node spends
  (aim: below 1 %), and that of all the portal's processes, for a machine that runs both.

It needs the environment of the tests: `python3 run.py setup --dev`.
"""

from __future__ import annotations

# isort: off
import tests.harness.environment  # noqa: F401 -- before Django reads its settings

# isort: on
import argparse
import logging
import os
import statistics
import time
from dataclasses import dataclass

import django
import psutil

os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
django.setup()

from tests.harness.stack import Stack, until  # noqa: E402 -- needs Django

NODE = "alpha"


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds, and shares of one core."""

    before_s: float
    startup_s: float
    after_s: float
    agent_share: float
    portal_share: float


def cpu_s(stack: Stack, training: psutil.Process) -> tuple[float, float]:
    """Return CPU seconds so far of the agent and of all portal processes.

    The training counts as neither.
    """
    agent = portal = 0.0
    for name, child in stack.supervisor.children.items():
        leader = psutil.Process(child.popen.pid)
        for process in (leader, *leader.children(recursive=name != NODE)):
            if process == training:
                continue
            used = process.cpu_times().user + process.cpu_times().system
            agent, portal = (agent + used, portal) if name == NODE else (agent, portal + used)
    return agent, portal


def measure(stack: Stack, steps: int) -> Measured:
    submitted = time.time()
    job_id = stack.submit(max_steps=steps, per_device_batch_size=2, effective_batch_size=2)
    training = until(stack.trainings, every_s=0.005, what="the training starts")[0]
    before_s = training.create_time() - submitted
    stack.client.wait(job_id, lambda job: job["internal_state"] == "running", every_s=0.5)
    first, began = cpu_s(stack, training), time.monotonic()
    until(lambda: not stack.trainings(), timeout_s=600, every_s=0.2, what="the training ends")
    ended, last, ran_s = time.time(), cpu_s(stack, training), time.monotonic() - began
    job = stack.client.wait(job_id, every_s=0.05)
    assert job["state"] == "succeeded", job["error"]
    startup_s = job["attempts"][-1]["measured"]["startup_s"]
    shares = [(end - start) / ran_s for start, end in zip(first, last, strict=True)]
    return Measured(before_s, startup_s, time.time() - ended, *shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    stack = Stack(leases={})
    try:
        stack.start()
        stack.start_agent(NODE)
        runs = [measure(stack, options.steps) for _ in range(options.jobs)]
    finally:
        stack.stop()
    for title, name, unit in (
        ("submission to training process", "before_s", "s"),
        ("the trainer's own start-up", "startup_s", "s"),
        ("training process to end of job", "after_s", "s"),
        ("CPU of the agent meanwhile", "agent_share", "of a core"),
        ("CPU of the portal meanwhile", "portal_share", "of a core"),
    ):
        values = [getattr(run, name) for run in runs]
        print(f"{title:<32} median {statistics.median(values):.3f}, worst {max(values):.3f} {unit}")


if __name__ == "__main__":
    main()
