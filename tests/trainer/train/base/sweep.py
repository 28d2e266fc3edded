"""Every kind of model that continues text, trained with an adapter.

The models are shrunk by rule.

`python -m tests.trainer.train.base.sweep [--write] [KIND ...]` lists what is new or changed against the table
`sweep.txt`, or writes it; 1 if a kind of the table changed. It takes ten minutes of one core.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.trainer.train.base.examined import BATCH, Findings, examine
from tests.trainer.train.base.shrunk import causal_kinds, configuration
from trainer.architectures import keys_picked

TABLE = Path(__file__).with_name("sweep.txt")
LOSS, READ = 5e-6, 1e-5
CPU_S = 40  # of one kind; a few have parts that no rule makes small
_LONGEST = 90  # characters of a reason


def table() -> dict[str, str]:
    """What each kind came to when the table was written."""
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    return dict(line.split(": ", 1) for line in lines)


def swept(kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what each kind comes to now."""
    for kind in kinds:
        folder = Path(tempfile.mkdtemp())
        try:
            with _quiet(), _limited():
                alone = bool(keys_picked(configuration(kind).to_dict()))
                came_to = in_words(examine(kind, "lora", folder, micro=1 if alone else BATCH))
        except Exception as wrong:  # noqa: BLE001 -- a kind is a program of its author
            came_to = _shortened(f"cannot be tried: {type(wrong).__name__}: {wrong}", folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        yield kind, _shortened(came_to, folder)


def in_words(found: Findings) -> str:
    """One line on a kind; the same on each machine."""
    if found.loss is None:
        return f"refused: {found.reason}"
    differs = [
        *(["losses differ from a plain loop"] if found.loss > LOSS else []),
        *(["goes on otherwise after a stop"] if found.resumed or found.reason else []),
        *(["is read otherwise"] if found.read is None or found.read > READ else []),
        *(["is lost in part"] if found.warnings else []),
    ]
    return f"{'; '.join(differs) or 'exact'}; adapted: {' '.join(found.adapted)}"


def changed(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """A line for each kind of the table that is gone or comes to something else."""
    return [
        f"{kind}: {now.get(kind, 'gone')} (was: {came_to})"
        for kind, came_to in before.items()
        if now.get(kind) != came_to
    ]


@contextmanager
def _limited() -> Iterator[None]:
    def over(*_signal: Any) -> None:
        raise TimeoutError(f"more than {CPU_S} s of CPU time")

    earlier = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


@contextmanager
def _quiet() -> Iterator[None]:
    nothing = io.StringIO()
    with redirect_stdout(nothing), redirect_stderr(nothing), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _shortened(text: str, folder: Path) -> str:
    text = " ".join(text.replace(str(folder / "base"), "MODEL").split())
    return text if len(text) <= _LONGEST or "adapted: " in text else f"{text[:_LONGEST]}..."


def main(arguments: Sequence[str]) -> int:
    """List or write; 1 if a kind of the table changed."""
    kinds = [word for word in arguments if not word.startswith("-")]
    before, now = table(), {}
    for kind, came_to in swept(kinds or causal_kinds()):
        now[kind] = came_to
        if kind not in before:
            print(f"{kind}: {came_to} (new)", flush=True)
        if "--write" in arguments:
            whole = {**before, **now} if kinds else now
            TABLE.write_text("".join(f"{name}: {whole[name]}\n" for name in sorted(whole)), encoding="utf-8")
    lines = changed({kind: before[kind] for kind in before if not kinds or kind in kinds}, now)
    print(*lines, sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    torch.set_num_threads(1)
    sys.exit(main(sys.argv[1:]))
