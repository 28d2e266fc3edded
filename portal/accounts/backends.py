"""Who may have a session."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend


class PeopleBackend(ModelBackend):
    """Passwords and sessions are for people; service accounts have neither."""

    def user_can_authenticate(self, user: Any) -> bool:
        return super().user_can_authenticate(user) and not getattr(user, "is_service", False)
