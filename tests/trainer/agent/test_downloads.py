"""Downloads of inputs that break on their way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainer.agent.conftest import StartAgent
from tests.trainer.agent.fakes.fake_portal import FakePortal, file_of, until
from trainer.agent.errors import ContentLost, PortalAway
from trainer.agent.portal_api.client import Portal
from trainer.protocol import File, Outcome

DATA = bytes(range(256)) * 1000
PIECE = 100_000
Fetch = Callable[[File], None]


@pytest.fixture
def fetch(portal: FakePortal, tmp_path: Path) -> Fetch:
    """Tries once to fetch what the portal has as train.jsonl, announced as `file`."""
    portal.give("c1", "normal", inputs={"train.jsonl": DATA})
    client = Portal(portal.url)
    return lambda file: client.fetch("c1", 1, file, tmp_path / "train.jsonl", threading.Event())


def test_a_download_goes_on_where_it_broke(portal: FakePortal, start_agent: StartAgent) -> None:
    portal.breaks_after = PIECE
    given = portal.give("c1", "normal", inputs={"train.jsonl": DATA})
    start_agent()
    assert until(lambda: given.end).outcome == Outcome.SUCCEEDED
    assert portal.ranges == ["", f"bytes={PIECE}-", f"bytes={2 * PIECE}-"]


@pytest.mark.parametrize("left", [b"", DATA, DATA + b"more"], ids=["nothing", "all", "more"])
def test_a_rest_of_no_use_is_fetched_anew(
    portal: FakePortal, fetch: Fetch, tmp_path: Path, left: bytes
) -> None:
    (tmp_path / "train.jsonl.part").write_bytes(left)
    fetch(file_of("train.jsonl", DATA))
    assert (tmp_path / "train.jsonl").read_bytes() == DATA
    assert portal.ranges == [""]


def test_a_rest_of_another_file_is_noticed_and_left_out(
    portal: FakePortal, fetch: Fetch, tmp_path: Path
) -> None:
    (tmp_path / "train.jsonl.part").write_bytes(b"another beginning")
    with pytest.raises(PortalAway, match="from its beginning again"):
        fetch(file_of("train.jsonl", DATA))
    fetch(file_of("train.jsonl", DATA))
    assert (tmp_path / "train.jsonl").read_bytes() == DATA
    assert portal.ranges == ["bytes=17-", ""]


def test_what_is_another_file_at_the_portal_comes_whole_and_is_refused(
    portal: FakePortal, fetch: Fetch, tmp_path: Path
) -> None:
    announced = file_of("train.jsonl", DATA[:-1] + b"x")
    portal.breaks_after = PIECE
    with pytest.raises(PortalAway):
        fetch(announced)
    portal.breaks_after = 0
    with pytest.raises(ContentLost, match="other contents"):
        fetch(announced)
    assert list(tmp_path.glob("train*")) == []
