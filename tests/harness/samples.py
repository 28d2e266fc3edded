"""How many random cases the ordinary suite plays: a third; all of them with EXAMPLES=all."""

from __future__ import annotations

import os


def examples(number: int) -> int:
    """Of so many random cases, those that are played now."""
    return number if os.environ.get("EXAMPLES") == "all" else max(1, number // 3)
