"""Signing in by a browser on any device (RFC 8628)."""

from __future__ import annotations

from .._errors import NotConfigured


def confirmed(url: str) -> str:
    """The token, once a person has confirmed the code. Raises NotConfigured."""
    raise NotConfigured(
        f"{url} has no sign-in for programs: make a token on its page API tokens,"
        f" then `foretune login {url} --token -`."
    )
