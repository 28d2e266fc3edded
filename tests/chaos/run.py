"""One chaos run, from start to report.

It starts everything, disturbs it by plan while people work, lets it settle, judges and reports.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from django.db import connections
from django.db.models import F

from portal.events.models import Event
from scheduler.models import Attempt, Claim, Job, Node
from scheduler.states import TERMINAL
from tests.chaos.clients import SHAPES, Crowd, body_of, tidy
from tests.chaos.cluster import NODES, Cluster, running
from tests.chaos.faults.kinds import CAPABILITIES, KINDS
from tests.chaos.judging.judge import judge
from tests.chaos.judging.recovery import Struck, table
from tests.chaos.judging.replays import replayed
from tests.chaos.judging.report import Report
from tests.chaos.judging.silence import Silences
from tests.chaos.judging.work import work
from tests.chaos.notes import Notebook
from tests.chaos.plan import Fault, plan
from tests.chaos.watch import Watch
from tests.harness.invariants import Violation
from tests.harness.servers import NotInstalled
from tests.stack.jobs import teach_that_two_slots_are_fast

USERS, OPEN_JOBS = 3, 3
AT_ONCE = {"min_run_s": 1.0, "cooldown_s": 1.0, "limit": 5}
SHORTEST_ROUND_S = 5.0  # of a policy that decides in rounds
SETTLE_S = 120.0  # beyond two leases: a matter that is still open then stays so


def run(options: argparse.Namespace) -> int:
    """Returns the exit code."""
    began = time.monotonic()
    try:
        made = Cluster(lease=options.lease, control_workers=options.control_workers)
    except NotInstalled as missing:
        print(f"There is no {missing} on this machine: nothing was tried.")
        return 2
    with running(made) as cluster:
        print(f"everything is up after {time.monotonic() - began:.0f} s", flush=True)
        report = disturbed(cluster, options)
        text = "\n".join(report.lines())
        if options.report:
            options.report.write_text(text + "\n")
        if options.keep:
            shutil.copytree(cluster.stack.data / "log", options.keep / "log", dirs_exist_ok=True)
    print(text, flush=True)
    return 1 if report.violations else 0


def disturbed(cluster: Cluster, options: argparse.Namespace) -> Report:
    """The whole run on a cluster that is up."""
    stack, notebook = cluster.stack, Notebook()
    losses = undisturbed_losses(cluster)
    print(f"undisturbed losses: {losses}", flush=True)
    if options.policy:
        choose(cluster, options.policy)
    faults = plan(
        random.Random(options.seed),
        KINDS,
        lasts_s=options.minutes * 60,
        lease_s=cluster.lease_s,
        several={"node": NODES, "control": cluster.control},
    )
    watch = Watch(stack.url, stack.token, cluster.postgres.url)
    crowd = Crowd(stack, notebook, options.seed, users=USERS, open_jobs=OPEN_JOBS)
    watch.start()
    crowd.start()
    try:
        struck = carry_out(cluster, list(faults), options.minutes * 60)
    finally:
        crowd.stop()
        died = wind_down(cluster, notebook)
        watch.stop()
    silences = Silences(watch.timeline, cluster.lease_s)
    found = judge(
        stack.alias,
        notebook.all(),
        losses=losses,
        silences=silences,
        nodes=len(cluster.nodes),
    )
    found += replayed(stack.supervisor.env)
    found += [Violation("F", "no process ends by itself", name, "") for name in died]
    found += [Violation("-", "a client went on to the end", error, "") for error in crowd.errors]
    if options.keep:
        keep(options.keep, stack.alias, notebook, struck)
    return report(options, cluster, notebook, struck, silences, found)


def choose(cluster: Cluster, policy: str) -> None:
    """Let another policy decide; one that stops jobs may do so after a second."""
    teach_that_two_slots_are_fast(cluster.stack)
    client = cluster.stack.admin
    known = client.get("policy/")["defaults"].get(policy, {})
    early = {name: value for name, value in AT_ONCE.items() if name in known}
    if known.get("round_s"):
        early["round_s"] = SHORTEST_ROUND_S
    client.patch("policy/", {"name": policy, "reason": "chaos", "parameters": early})


def undisturbed_losses(cluster: Cluster) -> dict[str, float]:
    """The final loss of each shape of job, from before anything is disturbed."""
    client = cluster.stack.client
    jobs = {shape: client.post("jobs/", body_of(cluster.stack, shape))["id"] for shape in SHAPES}
    ended = {shape: client.wait(job, timeout_s=300) for shape, job in jobs.items()}
    return {shape: float(job["attempts"][-1]["measured"]["final_loss"]) for shape, job in ended.items()}


def carry_out(cluster: Cluster, faults: Sequence[Fault], lasts_s: float) -> list[Struck]:
    """Begin and end each fault at its time, in this thread.

    Returns the times at which the faults truly began and ended.
    """
    start, struck = time.monotonic(), list[Struck]()
    in_force: dict[Fault, tuple[float, contextlib.ExitStack]] = {}
    begins = [(fault.at_s, number, False, fault) for number, fault in enumerate(faults)]
    ends = [(fault.until_s, number, True, fault) for number, fault in enumerate(faults)]
    try:
        for at_s, _, is_end, fault in sorted(begins + ends):
            time.sleep(max(0.0, start + at_s - time.monotonic()))
            if is_end:
                began, effect = in_force.pop(fault)
                effect.close()
                struck.append(Struck(fault.kind.name, fault.target, began, time.time()))
            else:
                print(f"{at_s:7.1f} {fault.kind.name} ({fault.target}, {fault.lasts_s:.1f} s)", flush=True)
                in_force[fault] = time.time(), contextlib.ExitStack()
                in_force[fault][1].enter_context(fault.kind.how(cluster, fault.target))
        time.sleep(max(0.0, start + lasts_s - time.monotonic()))
    finally:
        for _, effect in in_force.values():
            effect.close()
    return struck


def wind_down(cluster: Cluster, notebook: Notebook) -> list[str]:
    """Wait until all jobs have ended and all nodes are ready, or long enough.

    Returns the names of the processes that died meanwhile.
    """
    stack, end = cluster.stack, time.monotonic() + 2 * cluster.lease_s + SETTLE_S
    print("the faults are over", flush=True)
    while time.monotonic() < end:
        tidy(stack, notebook)
        time.sleep(2)
        connections[stack.alias].close()  # a restart of the database has cut it
        open_jobs = Job.objects.using(stack.alias).exclude(state__in=TERMINAL)
        if not open_jobs.exists() and not Node.present.using(stack.alias).exclude(state="ready").exists():
            break
    return [name for name, child in stack.supervisor.children.items() if child.popen.poll() is not None]


def report(
    options: argparse.Namespace,
    cluster: Cluster,
    notebook: Notebook,
    struck: list[Struck],
    silences: Silences,
    found: list[Violation],
) -> Report:
    rows = cluster.stack.alias
    attempts = Attempt.objects.using(rows)
    return Report(
        title=(
            f"seed {options.seed}: {options.minutes:g} minutes, {options.control_workers} control"
            f" worker{'s' * (options.control_workers > 1)}, leases of {cluster.lease_s:g} s"
        ),
        capabilities=CAPABILITIES,
        faults=len(struck),
        jobs=Counter(Job.objects.using(rows).values_list("state", flat=True)),
        outcomes=Counter(attempts.values_list("outcome", flat=True)),
        moved=attempts.filter(stopped_for=F("job")).count(),
        requests=notebook.counts(),
        recoveries=[
            *table(struck, silences.seen),
            *work(rows, notebook.all(), struck, silences),
        ],
        violations=found,
    )


def keep(folder: Path, rows: str, notebook: Notebook, struck: Sequence[Struck]) -> None:
    """Everything that the judge saw, to find out why."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.json").write_text(json.dumps(notebook.as_json(), indent=1))
    lines = [f"{one.began:.2f} {one.ended:.2f} {one.kind} ({one.target})\n" for one in struck]
    (folder / "faults.txt").write_text("".join(lines))
    for model in (Job, Attempt, Claim, Node, Event):
        found = list(model.objects.using(rows).order_by("pk").values())
        text = json.dumps(found, indent=1, default=str)
        (folder / f"{model.__name__.lower()}.json").write_text(text)
