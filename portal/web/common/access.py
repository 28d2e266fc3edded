"""Pages that are not for everyone."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied

from portal.accounts.requests import PageRequest


def refuse_others_than_admins(request: PageRequest) -> None:
    """Raises PermissionDenied."""
    if not request.user.is_admin:
        raise PermissionDenied
