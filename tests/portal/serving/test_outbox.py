"""An answer that waits on disk for a client is whole."""

from __future__ import annotations

import os

import pytest

from portal.serving import outbox


def test_a_disk_that_takes_a_part_leaves_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(outbox.os, "pwrite", lambda fd, data, at: whole(fd, data[:3], at))
    spool = outbox.spilled(bytearray(b"answered "))
    spool.append(b"in pieces")
    try:
        assert os.pread(spool.descriptor, spool.left, spool.offset) == b"answered in pieces"
    finally:
        os.close(spool.descriptor)
