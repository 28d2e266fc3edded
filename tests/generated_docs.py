"""Tables of docs that follow from the code: `python -m tests.generated_docs` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from scheduler.core.policies import POLICIES
from scheduler.core.types import Policy

SCHEDULING = Path(__file__).resolve().parent.parent / "docs" / "scheduling.md"
_HEAD = (
    "| name | order | needs | stops running jobs | round | source |\n| --- | --- | --- | --- | --- | --- |\n"
)
_TABLE = re.compile(re.escape(_HEAD) + r"(\|.*\n)*")


def with_policies(page: str) -> str:
    """The page with one row for each policy in its table."""
    return _TABLE.sub(lambda _: _HEAD + "".join(map(_row, POLICIES.values())), page)


def _row(policy: Policy) -> str:
    told = policy.description
    stops = "yes" if policy.preempts else "no"
    every = f"{policy.round_s:g} s" if policy.round_s else ""
    row = " | ".join([f"`{policy.name}`", told.order, told.needs, stops, every, told.source])
    return f"| {row} |\n".replace("|  |", "| |")


if __name__ == "__main__":
    SCHEDULING.write_text(with_policies(SCHEDULING.read_text()))
