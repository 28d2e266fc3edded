"""The folders of a machine that may be read as base models.

They are those below the roots that its administrator lists. Standard library only: the portal
asks before it predicts, the training process before it loads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def find(place: str | Path, roots: Sequence[Path]) -> Path | None:
    """Return the real path of `place`; None unless it lies below a root.

    Links and `..` are resolved. A place that is not written as a path below a root is never
    looked at, so that nobody learns what exists there.
    """
    real_roots = [Path(os.path.realpath(root)) for root in roots]
    written = Path(os.path.normpath(place))
    if not any(written.is_relative_to(os.path.normpath(root)) for root in (*roots, *real_roots)):
        return None
    real = Path(os.path.realpath(place))
    return real if any(real.is_relative_to(root) for root in real_roots) else None


def holds_all(folder: Path, roots: Sequence[Path]) -> bool:
    """Is none of the folder's files a link to what lies outside the roots?"""
    return all(find(file, roots) for file in folder.rglob("*"))


def overlap(root: Path, folder: Path) -> bool:
    """Does one of the two lie in the other, links resolved?"""
    one, other = Path(os.path.realpath(root)), Path(os.path.realpath(folder))
    return one.is_relative_to(other) or other.is_relative_to(one)
