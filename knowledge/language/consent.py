"""Which language model may see a person's texts."""

from __future__ import annotations

from django.conf import settings

from knowledge.language.server import ChatServer
from portal.accounts.models import User
from portal.accounts.selectors import texts_may_leave


def server_for(user: User, purpose: str) -> ChatServer | None:
    """Return the server for `reader` or `intent`.

    None where it is off, or a team of the person did not agree.
    """
    server: ChatServer | None = settings.LANGUAGE_SERVERS[purpose]
    return server if server is not None and texts_may_leave(user) else None
