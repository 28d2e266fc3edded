"""Errors about people.

AccountError
├── NotAllowed      the actor's role does not reach that far
├── Changed         someone else changed the same thing meanwhile
├── TooBusy         too many want the same at once
├── TokenEnded      a token that ended cannot be renewed
└── InvalidValue    a value that cannot be taken; `field` names it
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied


class AccountError(Exception):
    """Anything below; its text is a full sentence for the person who asked."""


class NotAllowed(AccountError, PermissionDenied):
    """The action is not allowed; Django answers 403 where nothing catches it."""


class Changed(AccountError):
    pass


class TokenEnded(AccountError):
    pass


class InvalidValue(AccountError):
    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


class TooBusy(AccountError):
    """The portal is too busy; the same request will be answered later."""
