"""Reading from a hub is bounded in bytes and time.

Its redirects do not lead the reader astray.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from knowledge.catalogue import remote
from tests.harness.hub import Hub, serving

LARGEST = 1000


class Leading(Hub):
    """Answers with a redirect to wherever the path says, or with its content."""

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        if path.startswith("/to/"):
            return 302, b"", {"Location": path.removeprefix("/to/")}
        if path.startswith("/times/"):
            left = int(path.removeprefix("/times/"))
            return 302, b"", {"Location": f"/times/{left - 1}" if left > 1 else "/there"}
        return 200, b"x" * int(path.rpartition("/")[2] or 0) if path[1:].isdigit() else b"content", {}


@pytest.fixture(scope="module")
def hub() -> Any:
    with serving(Leading("a/b", {})) as served:
        yield served


def get(hub: Hub, path: str, **bounds: Any) -> bytes:
    return remote.get(hub.address + path, **{"largest": LARGEST, "within_s": 10.0, **bounds})


def test_what_is_within_the_bounds_is_read(hub: Hub) -> None:
    assert get(hub, "/times/5") == b"content"
    assert len(get(hub, "/1000")) == LARGEST


def test_too_many_redirects_too_much_and_too_slow(hub: Hub) -> None:
    with pytest.raises(remote.Unbounded, match="more than 5 times"):
        get(hub, "/times/6")
    with pytest.raises(remote.Unbounded, match="larger than the 1,000 bytes"):
        get(hub, "/1001")
    with pytest.raises(httpx.HTTPError):
        get(hub, "/there", within_s=1e-9)


def test_a_public_hub_leads_to_no_private_address(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = remote.is_inside
    monkeypatch.setattr(remote, "is_inside", lambda host: host != "127.0.0.1" and inside(host))
    for address in ("169.254.169.254", "localhost", "10.0.0.1", "[::1]", "[fd00::1]", "0.0.0.0"):
        with pytest.raises(remote.Unbounded, match="private network"):
            get(hub, f"/to/http://{address}/latest/meta-data")


@pytest.mark.parametrize(
    ("hub_url", "target", "allowed"),
    [
        ("https://hub.example", "http://hub.example/a", False),
        ("https://hub.example", "ftp://hub.example/a", False),
        ("https://hub.example", "https://storage.example/a", True),
        ("http://127.0.0.1:1", "http://127.0.0.1:2/a", True),
        ("https://10.0.0.1", "https://10.0.0.2/a", True),
        ("https://8.8.8.8", "https://10.0.0.2/a", False),
    ],
)
def test_redirects_never_lead_from_tls_to_none_or_inside(hub_url: str, target: str, allowed: bool) -> None:
    try:
        remote.check_way(httpx.URL(hub_url), httpx.URL(target))
    except remote.Unbounded:
        assert not allowed
    else:
        assert allowed
