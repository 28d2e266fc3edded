"""The reviewed table: who gets which answer at which address."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.portal.access.asking import ROLES

FILE = Path(__file__).with_name("table.txt")


@dataclass(frozen=True)
class Row:
    """One row of the table.

    expected: the status by role

    body: the body sent, JSON with gaps or one of asking.FILES
    """

    method: str
    address: str
    expected: dict[str, str]
    body: str

    @property
    def line(self) -> str:
        answers = " ".join(f"{self.expected[role]:<5}" for role in ROLES)
        return f"{self.method:<6} {self.address:<50} {answers} {self.body}".rstrip()


def read() -> list[Row]:
    return [_row(line) for line in FILE.read_text().splitlines() if line and not line.startswith("#")]


def _row(line: str) -> Row:
    parts = line.split(maxsplit=2 + len(ROLES))
    statuses, body = parts[2 : 2 + len(ROLES)], parts[2 + len(ROLES) :]
    return Row(parts[0], parts[1], dict(zip(ROLES, statuses, strict=True)), *body or [""])
