"""Writes the client without an event loop: `python -m client.sync_half`.

`foretune/_sync/` is `foretune/_async/` without what waits; a test compares them.
"""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parent / "foretune" / "_async"
TARGET = SOURCE.with_name("_sync")
HEADER = "# Made from _async/ by client/sync_half.py.\n"
WORDS = {
    "AsyncIterator": "Iterator",
    "AsyncBaseTransport": "BaseTransport",
    "asynccontextmanager": "contextmanager",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aread": "read",
    "aiter_bytes": "iter_bytes",
    "async_call": "call",
    "anyio": "time",
}
DOC = '"""The client for programs without an event loop."""\n'


def sync(text: str) -> str:
    """The source without `async` and `await`, with the names of what does not wait."""
    text = re.sub(r"\b(async|await) ", "", text)
    text = re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), text)
    text = re.sub(r"\bAsync([A-Z]\w*)", r"\1", text)
    lines = text.splitlines(keepends=True)
    # `time` may be imported in the place of `anyio`, and once is enough.
    return "".join(
        line for number, line in enumerate(lines) if line != "import time\n" or line not in lines[:number]
    )


def made() -> dict[str, str]:
    """Each file of the half without an event loop, by its name."""
    found = {path.name: HEADER + sync(path.read_text()) for path in sorted(SOURCE.glob("*.py"))}
    return {**found, "__init__.py": DOC}


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    for name, text in made().items():
        (TARGET / name).write_text(text)


if __name__ == "__main__":
    main()
