"""The optional language models: one that helps to read scripts, one for sentences."""

from __future__ import annotations

from pathlib import Path

import environ

from knowledge.language.server import ChatServer


def servers(env: environ.Env) -> dict[str, ChatServer | None]:
    """Return the server for each purpose, `reader` and `intent`; None where it is off."""
    return {purpose: _server(env, purpose.upper()) for purpose in ("reader", "intent")}


def _server(env: environ.Env, prefix: str) -> ChatServer | None:
    url = env.str(f"{prefix}_URL", default="").strip()
    key_file = env.str(f"{prefix}_KEY_FILE", default="").strip()
    model = env.str(f"{prefix}_MODEL", default="").strip()
    return ChatServer(url, model, Path(key_file) if key_file else None) if url else None
