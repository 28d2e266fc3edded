"""Real text that every machine has: the docstrings of its Python library.

    python -m portal.ops.launch.sample_data FILE ROWS

Runs in a process of its own, since reading the docstrings imports the whole standard library.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

# Opening a window, a browser or a poem is not what an import here should do.
LEFT_OUT = {"antigravity", "this", "idlelib", "turtledemo", "lib2to3", "test", "tkinter", "turtle"}
SHORTEST, LONGEST = 40, 600  # characters of a docstring


def described(module_name: str) -> Iterator[tuple[str, str]]:
    """The public names of a module: (name and signature, docstring)."""
    try:
        module = importlib.import_module(module_name)
    except ImportError:
        return
    for name, thing in sorted(vars(module).items()):
        if name.startswith("_") or getattr(thing, "__module__", None) != module_name:
            continue
        text = inspect.getdoc(thing) or ""
        if len(text) > SHORTEST:
            yield f"{module_name}.{name}{_signature(thing)}", text


def _signature(thing: object) -> str:
    try:
        return str(inspect.signature(thing))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"


def write_corpus(path: Path, rows: int) -> int:
    """Write up to `rows` prompt/completion lines and return their number.

    They are spread evenly over the library.
    """
    warnings.simplefilter("ignore")
    modules = sorted(name for name in sys.stdlib_module_names if not name.startswith("_"))
    pairs = [pair for name in modules if name not in LEFT_OUT for pair in described(name)]
    step = max(1.0, len(pairs) / rows)
    chosen = [pairs[int(index * step)] for index in range(min(rows, len(pairs)))]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for title, text in chosen:
            row = {"prompt": f"Describe {title[:200]}\n", "completion": text[:LONGEST]}
            file.write(json.dumps(row) + "\n")
    return len(chosen)


if __name__ == "__main__":
    write_corpus(Path(sys.argv[1]), int(sys.argv[2]))
