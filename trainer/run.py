"""Train as RUN_DIR/spec.json says: `python -m trainer.run RUN_DIR`.

This is the agent's only interface to training. One GPU or CPU slot trains in this process. For
more, this process starts one process for each, with the variables that torchrun sets, and stays
their parent in the same process group. torchrun itself would put them into sessions of their
own, out of reach of the agent's signals, and kill them 30 s after a TERM, which may be too
early for a checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from trainer.protocol import EXIT_NO_ROOM, EXIT_STOPPED, Outcome, ReportKind
from trainer.train.errors import TrainError
from trainer.train.events import RunFigures, append_event
from trainer.train.process import STARTED, STOP_SIGNALS, StopSignal, leave, run_process, write_result
from trainer.train.settings import TrainingSpec, read_order

_started = time.monotonic()
_ORDERLY = (0, EXIT_STOPPED)


def main(arguments: list[str]) -> int:
    """Train, add the result as the last event, and return the exit code.

    The code is one of `trainer.protocol`. Of several folders each is trained in turn, whatever becomes of
    those before; the code is the last one's.
    """
    folders = [Path(argument).resolve() for argument in arguments]
    if not folders or not all(folder.is_dir() for folder in folders):
        print("usage: python -m trainer.run RUN_DIR...   (with spec.json and inputs/)", file=sys.stderr)
        return 2
    try:
        return [_run(folder) for folder in folders][-1]
    except OSError as wrong:
        with suppress(OSError):
            print(f"The result cannot be written: {wrong}", file=sys.stderr)
        return EXIT_NO_ROOM


def _run(run_dir: Path) -> int:
    """Raises OSError where the disk takes no result."""
    result = run_dir / "result.json"
    result.unlink(missing_ok=True)
    try:
        _train(read_order(run_dir))
    except (TrainError, OSError) as wrong:
        print(wrong, file=sys.stderr)
        write_result(run_dir, Outcome.ERROR, str(wrong), RunFigures(), _started)
    body = json.loads(result.read_text(encoding="utf-8"))
    with suppress(OSError):  # result.json tells the agent the same
        append_event(run_dir / "events.jsonl", ReportKind.RESULT, body)
    return int(body["exit_code"])


def _train(order: TrainingSpec) -> None:
    """Leaves result.json, or ends by the signal that ended a training process."""
    if order.processes == 1:
        run_process(order.run_dir, StopSignal(), _started)
        return
    failed = _wait(_launch(order))
    _store(order).unlink(missing_ok=True)
    result = order.run_dir / "result.json"
    if failed == -signal.SIGKILL or (failed < 0 and _reported_outcome(result) == Outcome.LOST):
        result.unlink(missing_ok=True)  # another process's complaint about the lost connection
    if failed < 0 and not result.exists():
        # as if the signal had hit this process: the agent then tells a kill from an error
        if failed != -signal.SIGKILL:
            signal.signal(-failed, signal.SIG_DFL)
        os.kill(os.getpid(), -failed)


def _launch(order: TrainingSpec) -> list[subprocess.Popen[bytes]]:
    """Start one process for each GPU or slot of this node.

    TERM and INT go on to all of them.
    """
    here = len(order.spec.gpus)
    shared = {
        "WORLD_SIZE": str(order.processes),
        "LOCAL_WORLD_SIZE": str(here),
        "FORETUNE_STORE": str(_store(order)),
        STARTED: str(_started),
    }
    if order.spec.nodes == 1:  # a host name that resolves elsewhere must not matter on one node
        shared["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    command = [sys.executable, "-m", "trainer.train.process", str(order.run_dir)]
    processes: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(number)

    # held back until every process exists here and has its own handler there
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    for number in STOP_SIGNALS:
        signal.signal(number, forward)
    for index in range(here):
        ranks = {"RANK": str(order.spec.rank * here + index), "LOCAL_RANK": str(index)}
        processes.append(subprocess.Popen(command, env={**os.environ, **shared, **ranks}))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    return processes


def _reported_outcome(result: Path) -> str:
    try:
        return str(json.loads(result.read_text(encoding="utf-8"))["outcome"])
    except OSError:
        return ""


def _store(order: TrainingSpec) -> Path:
    """The file through which the processes of one node find each other."""
    return order.run_dir / f".store-{os.getpid()}"


def _wait(processes: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all and return 0, or the exit code of the process that failed first.

    The others wait for a failed one in vain and are killed. Some may have noticed and failed already; a kill
    from outside is then the cause.
    """
    while True:
        codes = [process.poll() for process in processes]
        failed = [code for code in codes if code is not None and code not in _ORDERLY]
        if failed or None not in codes:
            break
        time.sleep(0.1)
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
    return min(failed, key=lambda code: (code != -signal.SIGKILL, code > 0), default=0)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
