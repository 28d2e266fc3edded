"""A training without training.

It keeps the file contract of `trainer.run` with the standard library only. The parameter `mode`
of its spec names its behaviour: one function each.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RUN = Path(sys.argv[-1])
SPEC = json.loads((RUN / "spec.json").read_text())
STOPPED: list[int] = []


def event(kind: str, **body: Any) -> None:
    with (RUN / "events.jsonl").open("a") as file:
        file.write(json.dumps({"kind": kind, **body}) + "\n")


def listed(folder: Path) -> list[dict[str, Any]]:
    return [
        {
            "path": str(path.relative_to(folder)),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size,
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


def checkpoint(step: int) -> None:
    folder = RUN / "checkpoints" / f"step-{step}.part"
    folder.mkdir(parents=True)
    size = RUN / "weight_bytes"
    weights = bytes(int(size.read_text())) if size.exists() else f"weights of step {step}".encode()
    (folder / "weights.bin").write_bytes(weights)
    (folder / "manifest.json").write_text(json.dumps({"step": step, "files": listed(folder)}))
    folder.rename(folder.with_name(f"step-{step}"))
    event("checkpoint", step=step)


def result(outcome: str, code: int, reason: str = "", step: int = 5) -> int:
    output = listed(RUN / "output") if (RUN / "output").exists() else []
    value = {"outcome": outcome, "exit_code": code, "reason": reason, "step": step, "output": output}
    (RUN / "result.json.part").write_text(json.dumps(value))
    (RUN / "result.json.part").rename(RUN / "result.json")
    event("result", outcome=outcome)
    return code


def begin() -> None:
    (RUN / "starts").open("a").write(f"{os.getpid()}\n")
    event("start", steps_total=5, tokens_total=100, startup_s=0.1)


def finish() -> int:
    (RUN / "output").mkdir()
    (RUN / "output" / "adapter.bin").write_bytes(b"learnt\n" * 1000)
    return result("succeeded", 0)


def normal() -> int:
    begin()
    for step in range(1, 6):
        event("step", step=step, total_steps=5, loss=float("nan") if step == 1 else 1 / step)
        if step == 3:
            checkpoint(step)
            time.sleep(0.5)
    print("all is well")
    return finish()


def steady() -> int:
    """Steps until RUN/finish exists; saves and leaves on TERM."""
    signal.signal(signal.SIGTERM, lambda number, frame: STOPPED.append(number))
    begin()
    step = 0
    while not STOPPED and not (RUN / "finish").exists():
        step += 1
        event("step", step=step)
        time.sleep(0.05)
    if not STOPPED:
        return finish()
    checkpoint(step)
    return result("stopped", 75, step=step)


def tokenised() -> int:
    """As `steady`, with tokens that another attempt may use."""
    (RUN / "tokens").mkdir()
    return steady()


def forgetful() -> int:
    """Keeps its newest two checkpoints, as the trainer does, and makes ten a second."""
    begin()
    for step in range(1, 1000):
        if (RUN / "finish").exists():
            return finish()
        checkpoint(step)
        shutil.rmtree(RUN / "checkpoints" / f"step-{step - 2}", ignore_errors=True)
        time.sleep(0.1)
    return 1


def stubborn() -> int:
    """Does not care about TERM, and has a grandchild in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = "import os, time; os.setsid(); time.sleep(300)"
    grandchild = subprocess.Popen([sys.executable, "-c", child])
    (RUN / "grandchild").write_text(str(grandchild.pid))
    begin()
    while True:
        event("step", step=1)
        time.sleep(0.1)


def silent() -> int:
    begin()
    time.sleep(300)
    return 0


def oom() -> int:
    begin()
    return result("oom", 76, "the batch needs 3 GiB more than there is")


def error() -> int:
    begin()
    return result("error", 1, "line 7 of train.jsonl has no completion")


def crash() -> int:
    begin()
    raise RuntimeError("weights do not fit together")


def flood() -> int:
    begin()
    for number in range(20_000):
        print(f"line {number} of many that nobody reads")
    return finish()


def lying() -> int:
    """Lists an output that is a link to somebody else's file."""
    begin()
    (RUN / "output").mkdir()
    (RUN / "output" / "adapter.bin").symlink_to("/etc/hostname")
    return result("succeeded", 0)


def environment() -> int:
    begin()
    event("log", text="a kind that only the agent reports")
    (RUN / "environment.json").write_text(json.dumps(dict(os.environ)))
    return finish()


def resumed() -> int:
    begin()
    folder = Path(SPEC["local"]["resume_dir"])
    print("resumed from", (folder / "weights.bin").read_text())
    print("with tokens" if Path(SPEC["local"]["tokens_dir"]).is_dir() else "without tokens")
    return finish()


if __name__ == "__main__":
    sys.exit(globals()[SPEC["spec"]["params"]["mode"]]())
