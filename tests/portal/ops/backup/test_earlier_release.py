"""A portal with data of an earlier release starts on this one.

`tests/data/earlier_release` holds a backup that the earlier release made, and its answers over
REST at that moment.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from typing import Any

import pytest

from tests.portal.ops.backup.portal_process import REPOSITORY, Portal

DATA = REPOSITORY / "tests" / "data" / "earlier_release"
# Changed by later releases on purpose: docs/figures.md, and sentences about policies.
CHANGED = {"state_since", "eta_s", "tokens_per_second", "live", "simulated", "summaries", "last_login"}
# The default policy is another, and nodes that nothing is heard of are told apart.
SAID_ANEW = {("fifo", "easy"), ("ready", "silent")}


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    root = tmp_path_factory.mktemp("upgraded")
    archive = root / "portal.tar"
    archive.write_bytes(lzma.decompress((DATA / "portal.tar.xz").read_bytes()))
    portal = Portal(root / "data", f"sqlite:///{root / 'data' / 'portal.sqlite3'}")
    portal.manage("restore", str(archive))
    yield portal
    portal.end()


def differences(was: Any, now: Any, place: str = "") -> Iterator[str]:
    """Where an answer lacks something of an earlier one, or says it differently."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in was.keys() - CHANGED:
            if name in now:
                yield from differences(was[name], now[name], f"{place}.{name}")
            else:
                yield f"{place}.{name} is gone"
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for number, (before, after) in enumerate(zip(was, now, strict=True)):
            yield from differences(before, after, f"{place}[{number}]")
    elif was != now and (was, now) not in SAID_ANEW:
        yield f"{place}: {was} became {now}"


def test_rest_answers_as_before_the_upgrade(portal: Portal) -> None:
    before = json.loads(lzma.decompress((DATA / "answers.json.xz").read_bytes()))
    assert len(before) > 40
    after = portal.small_portal("read", *before)
    assert list(differences(before, after)) == []


@pytest.mark.parametrize(
    ("tabs_of", "least"), [("some", 100), pytest.param("all", 150, marks=pytest.mark.slow)]
)
def test_every_page_opens(portal: Portal, tabs_of: str, least: int) -> None:
    pages = portal.small_portal("open_pages", tabs_of)
    assert len(pages) > least
    assert {page: status for page, status in pages.items() if status != 200} == {}


@pytest.mark.slow  # it trains a predictor on all shipped rows
def test_the_loop_goes_on_and_a_predictor_of_an_earlier_format_is_replaced(portal: Portal) -> None:
    by_physics = portal.small_portal("recommend")
    assert by_physics["predictor_version"] is None
    assert by_physics["options"]
    assert portal.small_portal("go_on") == []
    assert portal.small_portal("recommend")["predictor_version"] == 2
