"""The optional language models: one that helps to read scripts, one for sentences."""

from __future__ import annotations

from pathlib import Path

from knowledge.language.server import ChatServer


def server(url: str, model: str, key_file: str) -> ChatServer | None:
    """The server at `url`; None where there is none, so that it is off."""
    url, model, key_file = url.strip(), model.strip(), key_file.strip()
    return ChatServer(url, model, Path(key_file) if key_file else None) if url else None
