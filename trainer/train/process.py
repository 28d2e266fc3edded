"""One training process.

It runs the recipe's entry and leaves RUN_DIR/result.json, however it ends.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import NoReturn

from trainer.checkpoint import write_atomically
from trainer.protocol import EXIT_OOM, EXIT_STOPPED, Outcome
from trainer.train import import_gc
from trainer.train.errors import (
    CheckpointFault,
    PeersMissing,
    Stopped,
    TrainError,
    has_lost_peers,
    is_out_of_memory,
    node_fault,
)
from trainer.train.events import RunFigures
from trainer.train.settings import TrainingSpec, read_order

EXIT_CODES = {
    Outcome.SUCCEEDED: 0,
    Outcome.STOPPED: EXIT_STOPPED,
    Outcome.OOM: EXIT_OOM,
    Outcome.ERROR: 1,
    Outcome.DECLINED: 1,
    Outcome.LOST: 1,
    Outcome.CHECKPOINT: 1,
}
STARTED = "FORETUNE_STARTED"  # time.monotonic() of the launching process
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_MAX_REASON = 2000


class StopSignal:
    """Set by TERM or INT; the training looks at it between steps."""

    def __init__(self) -> None:
        self.requested = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._receive)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True


def run_process(run_dir: Path, stop: StopSignal, started: float) -> int:
    """Train and write result.json. Returns the exit code of `trainer.protocol`."""
    measured = RunFigures()
    outcome, reason = _attempt(run_dir, measured, stop, started)
    first = os.environ.get("LOCAL_RANK", "0") == "0"  # one result on each node
    if (first or EXIT_CODES[outcome] in (1, EXIT_OOM)) and not (run_dir / "result.json").exists():
        write_result(run_dir, outcome, reason, measured, started)
    return EXIT_CODES[outcome]


def _attempt(run_dir: Path, measured: RunFigures, stop: StopSignal, started: float) -> tuple[Outcome, str]:
    try:
        order = read_order(run_dir)
        _set_environment(order)
        if missing := [name for name in order.recipe.needs if importlib.util.find_spec(name) is None]:
            return Outcome.DECLINED, _lacking(order.recipe.name, missing)
        with import_gc.resting():
            entry = importlib.import_module(order.recipe.entry)
        entry.train(order, measured, stop, started)
    except Stopped:
        return Outcome.STOPPED, "stopped on request; the steps done are in the checkpoint"
    except TrainError as wrong:
        print(wrong, file=sys.stderr)
        return Outcome.ERROR, str(wrong)
    except PeersMissing as wrong:
        return Outcome.LOST, f"The other nodes of this training did not come. {wrong}"
    except Exception as wrong:  # noqa: BLE001 - the edge of the process: any error becomes a result
        traceback.print_exc()
        return explain(wrong, measured)
    return Outcome.SUCCEEDED, ""


def _lacking(recipe: str, packages: Sequence[str]) -> str:
    named = " ".join(packages)
    return f"The recipe {recipe} needs {named}, which this node's environment lacks; install it there."


def explain(wrong: Exception, measured: RunFigures) -> tuple[Outcome, str]:
    """Class of the failure: the user's retries are not for a sick node or a lost one."""
    if is_out_of_memory(wrong):
        return Outcome.OOM, _out_of_memory(measured.peak_memory_bytes, wrong)
    if fault := node_fault(wrong):
        return Outcome.LOST if measured.startup_s else Outcome.DECLINED, fault
    if has_lost_peers(wrong.__cause__ or wrong):
        return Outcome.LOST, f"The connection to the other training processes broke. ({wrong})"
    if isinstance(wrong, CheckpointFault):
        return Outcome.CHECKPOINT, str(wrong)
    return Outcome.ERROR, f"{type(wrong).__name__}: {wrong}"


def _out_of_memory(peak_bytes: int, wrong: Exception) -> str:
    detail = (str(wrong) or type(wrong).__name__).splitlines()[0]
    return (
        f"Out of memory at a peak of {peak_bytes / 2**30:.2f} GiB. A smaller per_device_batch_size or "
        f"tokens_per_sample, or gradient_checkpointing, needs less. ({detail})"
    )


def _set_environment(order: TrainingSpec) -> None:
    """Variables that transformers and the hub client read when they are imported."""
    # the first process of a node tokenises with the threads of all, which wait for it
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    os.environ["RAYON_NUM_THREADS"] = str(max(1, order.threads) * len(order.spec.gpus))
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ.setdefault("HF_HOME", str(order.models_dir / "huggingface"))
    # what later versions of the libraries will change is no news for a log
    warnings.simplefilter("ignore", FutureWarning)
    if order.offline:
        os.environ["HF_HUB_OFFLINE"] = "1"


def write_result(run_dir: Path, outcome: Outcome, reason: str, measured: RunFigures, started: float) -> None:
    """result.json, whole or not at all."""
    body = {
        "outcome": outcome,
        "reason": reason[:_MAX_REASON],
        "exit_code": EXIT_CODES[outcome],
        "runtime_s": time.monotonic() - started,
        **asdict(measured),
    }
    write_atomically(run_dir / "result.json", json.dumps(body, indent=1))


def die_with_parent() -> None:
    """Linux: a process whose launcher was killed must not train on unseen."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def leave(code: int) -> NoReturn:
    """End the process as it is.

    To take PyTorch's modules apart costs more than a second, and after an error tearing down
    open connections to other processes could abort or hang.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    die_with_parent()
    leave(run_process(Path(sys.argv[1]), StopSignal(), float(os.environ[STARTED])))
