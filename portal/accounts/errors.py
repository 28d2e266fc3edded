"""Errors about people.

AccountError
├── NotAllowed      the actor's role does not reach that far
├── Changed         someone else changed the same thing meanwhile
├── TooBusy         too many want the same at once
└── Refused         a value that cannot be taken; `field` names it
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied


class AccountError(Exception):
    """Anything below; its text is a full sentence for the person who asked."""


class NotAllowed(AccountError, PermissionDenied):
    """Where nobody catches it, Django answers 403."""


class Changed(AccountError):
    pass


class InvalidValue(AccountError):
    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class TooBusy(AccountError):
    """Nothing is wrong with the request; later it will be answered."""
