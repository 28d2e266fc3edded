"""Judging rows by the invariants of docs/architecture.md.

The tests of the scheduler, the live stack and the chaos run judge by these and by nothing else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from django.db import connections

from tests.harness.invariant_checks import CHECKS, ENDED, Check

# A moment is read before the transaction that writes it, which may wait for a lock for as long as this.
SLACK_S = 20


class Violation(NamedTuple):
    """One thing that should not be."""

    number: str
    says: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.number} {self.says}: {self.subject} {self.detail}".rstrip()


def violations(rows: str = "default", checks: tuple[Check, ...] = CHECKS) -> list[Violation]:
    """Everything that breaks one of the checks. rows: alias of the database."""
    connection = connections[rows]
    found = []
    for check in checks:
        with connection.cursor() as cursor:
            cursor.execute(_in_dialect(check.broken, connection.vendor))
            found += [
                Violation(check.number, check.says, str(subject), str(detail))
                for subject, detail in cursor.fetchall()
            ]
    return found


def _in_dialect(query: str, vendor: str) -> str:
    """LATER(moment) is the moment and the slack; PRESENT is the database's clock."""
    later, present = rf"(\1 + interval '{SLACK_S} seconds')", "clock_timestamp()"
    if vendor == "sqlite":
        later, present = rf"strftime('%Y-%m-%d %H:%M:%f', \1, '+{SLACK_S} seconds')", "'now'"
    return re.sub(r"LATER\(([\w.]+)\)", later, query).replace("PRESENT", present)


def assert_sound(rows: str = "default") -> None:
    """At any moment, whatever is still going on."""
    assert not (found := violations(rows)), "\n".join(map(str, found))


def assert_all_hold(rows: str) -> None:
    """And every job has ended: nothing is held any more."""
    assert not (found := violations(rows, CHECKS + ENDED)), "\n".join(map(str, found))
