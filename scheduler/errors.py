"""Errors of the scheduler; each is something a caller may handle.

SchedulerError
├── NotFound                an object that does not exist, or is not the asker's
├── ContentLost             an object whose content the portal has lost
├── BadParameters           values that cannot be used, by field
│   └── BeyondRight         values that others may use
├── BadFile                 an upload that is not training data, by line
├── FileTooLarge
├── OverQuota               an upload beyond its sender's storage quota
├── StorageFull             the portal has no room for an upload
├── IllegalTransition       the state table forbids it
├── StaleJob                the job moved meanwhile: read it again
├── SchedulerReplaced       another scheduler has taken over
├── CannotPlace             a decision that no longer fits the rows
├── StaleAttempt            a report with an old fence
├── BadReport               a report that makes no sense in this state
├── Conflict                a row changed meanwhile, or is in use
│   └── PlanOutdated        what a plan promised holds no more
├── KeyReused, KeyInUse     idempotency keys
├── Superseded              an earlier start of an agent speaks beside a later one
├── NodeRefused             a join token or node token that is not valid
└── OldProtocol             an agent too old to be served
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

State = TypeVar("State", bound=StrEnum)


class SchedulerError(Exception):
    """Anything below; its text is a full sentence for the person who asked."""


class NotFound(SchedulerError):
    pass


class ContentLost(SchedulerError):
    pass


class BadParameters(SchedulerError):
    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {message}" for name, message in self.fields.items()))


class BeyondRight(BadParameters):
    pass


class BadFile(SchedulerError):
    def __init__(self, lines: Sequence[tuple[int, str]]) -> None:
        self.lines = list(lines)
        super().__init__("; ".join(f"line {line}: {message}" for line, message in self.lines))


class FileTooLarge(SchedulerError):
    pass


class OverQuota(SchedulerError):
    pass


class StorageFull(SchedulerError):
    pass


class IllegalTransition(SchedulerError):
    def __init__(self, message: str, state: str, fields: Mapping[str, str] | None = None) -> None:
        self.state, self.fields = state, dict(fields or {})
        super().__init__(message)


def check_transition(what: str, old: State, to: State, table: Mapping[State, frozenset[State]]) -> None:
    """Raise IllegalTransition where a table of states forbids the move."""
    if to not in table[old]:
        raise IllegalTransition(f"A {what} that is {old} cannot become {to}.", old)


class StaleJob(SchedulerError):
    def __init__(self, message: str, fields: Mapping[str, str] | None = None) -> None:
        self.fields = dict(fields or {})
        super().__init__(message)


class SchedulerReplaced(SchedulerError):
    pass


class CannotPlace(SchedulerError):
    pass


class StaleAttempt(SchedulerError):
    pass


class BadReport(SchedulerError):
    pass


class Implausible(BadReport):
    """What no honest node reports.

    It cannot be, by the job's plan or by what hardware is.
    """


class Conflict(SchedulerError):
    pass


class PlanOutdated(Conflict):
    def __init__(self, message: str, difference: Sequence[Mapping[str, Any]]) -> None:
        self.difference = [dict(one) for one in difference]
        super().__init__(message)


class KeyReused(SchedulerError):
    pass


class KeyInUse(SchedulerError):
    pass


class Superseded(SchedulerError):
    pass


class NodeRefused(SchedulerError):
    pass


class OldProtocol(SchedulerError):
    pass
