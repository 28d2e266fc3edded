"""The half of the client without an event loop is made from the half with one."""

from __future__ import annotations

from client.sync_half import TARGET, made


def test_the_half_without_an_event_loop_is_the_other_one_without_waiting() -> None:
    written = {path.name: path.read_text() for path in TARGET.glob("*.py")}
    assert written == made(), "run .venv/bin/python -m client.sync_half"
