"""Which file of a tree a path means."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection
from pathlib import PurePosixPath


def found_file(files: Collection[str], path: str, near: str) -> str | None:
    """Find the file of the tree that a path means.

    It is looked for from where it is named, from the root, or by its end.
    """
    path = path.strip().removeprefix("./").removeprefix("file://")
    if not path or len(path) > 300 or path.endswith("/"):
        return None
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(near), path))
    for name in (path, beside):
        if name in files:
            return name
    bare = re.sub(r"^(\$\w+|\$\{\w+\}|/|\.\./)+/?", "", path).lstrip("/")
    tail = [name for name in files if name.endswith("/" + bare)]
    if len(tail) == 1:
        return tail[0]
    same = [name for name in files if PurePosixPath(name).name == PurePosixPath(bare).name]
    return same[0] if len(same) == 1 and "." in bare else None
