"""Take away one guard at a time; the tests must notice each time.

python benchmarks/guards.py [NAME ...]     (run in .venv; about ten seconds a guard, in a copy of the tree)
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SUITES = ["tests/scheduler", "tests/portal/nodes", "tests/portal/api/test_idempotency.py"]
PACKAGES = ("portal", "scheduler", "knowledge", "trainer", "tests", "templates", "static", "pyproject.toml")


class Guard(NamedTuple):
    """A line that keeps an invariant, and the same line without it."""

    file: str
    line: str
    without: str


GUARDS = {
    "fence": Guard(
        "scheduler/services/sync/claims.py",
        "if attempt.ended_at is not None or fence != attempt.fence or fence != attempt.job.fence:",
        "if False:",
    ),
    "node of a claim": Guard(
        "scheduler/services/sync/claims.py",
        "if claim is None or claim.node_id != node.pk:",
        "if claim is None:",
    ),
    "one report, one effect": Guard(
        "scheduler/services/sync/claims.py", "if report.seq != acked + 1:", "if False:"
    ),
    "version of a job": Guard(
        "scheduler/services/jobs/transitions.py",
        "here = Job.objects.filter(pk=job.pk, version=job.version, state=old)",
        "here = Job.objects.filter(pk=job.pk)",
    ),
    "transition table": Guard(
        "scheduler/services/jobs/transitions.py",
        "if to not in TRANSITIONS[old] and not raises_stop:",
        "if False:",
    ),
    "transition table of nodes": Guard(
        "scheduler/services/nodes/state.py",
        "if to not in NODE_TRANSITIONS[NodeState(node.state)]:",
        "if False:",
    ),
    "one holder of a GPU": Guard(
        "scheduler/migrations/0001_initial.py",
        "fields=('gpu',), name='one_holder_per_gpu'",
        "fields=('gpu', 'claim'), name='one_holder_per_gpu'",
    ),
    "epoch": Guard(
        "scheduler/loop/leadership.py",
        "filter(pk=epoch.pk, number=epoch.number, busy=True).update(since=database_now())",
        "filter(pk=epoch.pk).update(since=database_now())",
    ),
    "single tick": Guard("scheduler/loop/leadership.py", "Q(busy=False) | died, pk=1", "pk=1"),
    "leases after a gap": Guard("scheduler/core/serving.py", "if at - self.heard_at > gap:", "if False:"),
    "a heartbeat that comes meanwhile": Guard(
        "scheduler/loop/leases.py",
        "if node := silent.select_for_update().filter(pk=pk).first():",
        "if node := Node.objects.get(pk=pk):",
    ),
    "a drain outlasts a loss": Guard(
        "scheduler/services/nodes/state.py",
        "return last if last and last.kind == NodeEventKind.DRAIN else None",
        "return None",
    ),
    "a block for GPUs outlasts a loss": Guard(
        "scheduler/services/nodes/state.py",
        'kept = node.block_kind if node.block_kind in STANDING else ""',
        'kept = ""',
    ),
    "ready nodes only": Guard(
        "scheduler/services/jobs/attempts.py", "if len(ready) != len(node_ids):", "if False:"
    ),
    "lost until nothing runs": Guard(
        "scheduler/services/sync/node_sync.py", "if not still_running and (", "if ("
    ),
    "what comes late": Guard(
        "scheduler/services/nodes/boots.py", "here = here.filter(sync_seq__lt=message.seq)", "pass"
    ),
    "earlier starts of an agent": Guard(
        "scheduler/services/nodes/boots.py",
        "if message.boot_id in node.old_boot_ids and not _has_outlived(node, message, now):",
        "if False:",
    ),
    "one node for one enrolment": Guard(
        "scheduler/services/nodes/register.py",
        "if known := Node.present.filter(token_hash=digest_of(token)).first():",
        "if known := None:",
    ),
    "who declined is avoided": Guard("scheduler/loop/declines.py", "if until > now:", "if False:"),
    "complete checkpoints": Guard(
        "scheduler/services/sync/reports.py", "_require_received(claim, step, files)", "pass"
    ),
    "digest of an artifact": Guard(
        "scheduler/services/sync/artifacts.py", "if digest != sha256:", "if False:"
    ),
    "key and body": Guard(
        "scheduler/services/idempotency.py",
        "if row is not None and row.body_digest != self.body_digest:",
        "if False:",
    ),
    "a key answered once": Guard(
        "scheduler/services/idempotency.py",
        "if answer := self._check(row):",
        "if (answer := self._check(row)) and not answer:",
    ),
    "cancel wins": Guard(
        "scheduler/services/jobs/attempts.py",
        "if outcome is Outcome.SUCCEEDED and stop_for is not StopFor.CANCEL:",
        "if outcome is Outcome.SUCCEEDED:",
    ),
}


def is_noticed(guard: Guard) -> bool:
    """Return whether a test fails in a copy of the tree without the guard.

    Raises ValueError if the guard is not in its file exactly once.
    """
    with tempfile.TemporaryDirectory(prefix="foretune-guard-") as folder:
        for name in PACKAGES:
            source = ROOT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, Path(folder) / name)
        file = Path(folder) / guard.file
        text = file.read_text()
        if text.count(guard.line) != 1:
            raise ValueError(f"{guard.file} no longer holds exactly one line {guard.line!r}")
        file.write_text(text.replace(guard.line, guard.without))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *SUITES]
        return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(GUARDS)}")
    missed = []
    for name in parser.parse_args().names or GUARDS:
        noticed = is_noticed(GUARDS[name])
        print(f"{name:28} {'noticed' if noticed else 'NOT NOTICED'}", flush=True)
        missed += [] if noticed else [name]
    print(f"{len(missed)} of the guards can go without a test failing")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
