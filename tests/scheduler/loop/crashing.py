"""Death of a process between two transactions.

The process dies at the first point, at the second, and so on to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.transaction import Atomic

WRITES = frozenset({"INSERT", "UPDATE", "DELETE"})
ENDS_OF_BLOCKS = frozenset({"SAVEPOINT", "RELEASE", "ROLLBACK"})


class Crash(BaseException):
    """kill -9: no `except Exception` and no clean-up goes on from here."""


class Death:
    """A death that strikes after `after` transactions.

    It counts blocks and single statements outside of them. A test itself runs in a transaction,
    which is rolled back: blocks right below it are the ones that a process would commit.
    """

    def __init__(self, after: int) -> None:
        self.left, self.struck = after, False
        self.depth = len(connection.atomic_blocks)

    def statement(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        """Wraps each statement: the dead say nothing more to the database."""
        word = sql.split(None, 1)[0].upper()
        if self.struck and word not in ENDS_OF_BLOCKS:
            raise Crash
        answer = execute(sql, params, many, context)
        if word in WRITES:
            self.committed()
        return answer

    def committed(self) -> None:
        """To be called whenever something may have been committed."""
        if self.struck or len(connection.atomic_blocks) != self.depth:
            return
        self.left -= 1
        if self.left == 0:
            self.struck = True
            raise Crash


@contextmanager
def dying(after: int) -> Iterator[Death]:
    """Let the code in this context die after so many transactions.

    `struck` tells whether there were as many.
    """
    death, leave = Death(after), Atomic.__exit__

    def leave_block(block: Atomic, failed: Any, error: Any, trace: Any) -> None:
        leave(block, failed, error, trace)
        if failed is None:
            death.committed()

    try:
        with patch.object(Atomic, "__exit__", leave_block), connection.execute_wrapper(death.statement):
            yield death
    except Crash:
        connection.needs_rollback = False
