"""Leases count only time in which the portal served.

The worked examples are in seconds, with a lease of 90.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.serving import LeaseTerms, Reachability, lost_at, lost_before

START = datetime(2026, 1, 1, tzinfo=UTC)
TERMS = LeaseTerms(lease=timedelta(seconds=90), stops=timedelta(seconds=900))


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def reachability(*times: float) -> Reachability:
    """Something came through at these times."""
    made = Reachability(heard_at=at(times[0]), since=at(times[0]))
    for time in times[1:]:
        made = made.heard(at(time), TERMS.gap)
    return made


STEADY = tuple(range(0, 2000, 10))


@pytest.mark.parametrize(
    ("web", "nodes", "several", "now", "lost"),
    [
        pytest.param(STEADY[:21], (0,), False, 200, 110, id="one node, the web server serves"),
        pytest.param(STEADY[:9], (0,), False, 85, None, id="for less than a lease"),
        pytest.param((0, 10, 110), (0, 10), False, 110, None, id="one node, web server away"),
        pytest.param((0, *STEADY[11:21]), (0,), False, 200, 110, id="away, then a whole lease"),
        pytest.param((0, *STEADY[11:20]), (0,), False, 195, None, id="away, then not quite a lease"),
        pytest.param((*STEADY[:6], *STEADY[16:21]), (0,), False, 200, 0, id="away, what was before counts"),
        pytest.param((*STEADY[:9], *STEADY[16:19]), (0,), False, 189, None, id="just back"),
        pytest.param(STEADY[:5], (0,), False, 200, None, id="one node, the web server is away"),
        pytest.param(STEADY[:21], STEADY[:21], True, 200, 110, id="several, one is heard"),
        pytest.param(STEADY[:21], (0, 10), True, 200, None, id="several, none is heard"),
        pytest.param(STEADY[:21], (0, 10, 110, 120), True, 121, None, id="none was, the first is back"),
        pytest.param(STEADY[:21], (0, *STEADY[11:21]), True, 200, 110, id="back for a whole lease"),
        pytest.param(STEADY[:21], (0, *STEADY[15:21]), True, 200, None, id="back for less than proves it"),
        pytest.param(STEADY[:21], (0, *STEADY[11:18]), True, 171, 81, id="long enough to prove it"),
        pytest.param(
            STEADY,
            (0, *(t + n for t in range(60, 240, 60) for n in (0, 10, 20))),
            True,
            210,
            70,
            id="others come and go",
        ),
        pytest.param(STEADY, (0, 10), True, 1990, 1090, id="all have stopped by themselves"),
        pytest.param(STEADY[:21], (0, 29, 58, 87, 116, 145, 174, 199), True, 200, 110, id="short gaps count"),
        pytest.param((0, 50, 100, 150, 200), (0,), False, 200, None, id="long gaps do not"),
    ],
)
def test_whose_silence_proves_what(
    web: tuple[float, ...], nodes: tuple[float, ...], several: bool, now: float, lost: float | None
) -> None:
    found = lost_before(
        TERMS, web=reachability(*web), nodes=reachability(*nodes), several=several, now=at(now)
    )
    assert found == (None if lost is None else at(lost))


@pytest.mark.parametrize(
    ("web", "nodes", "several", "now", "expected"),
    [
        pytest.param(STEADY[:8], (0,), False, 75, 90, id="one node, the web server serves"),
        pytest.param((0, 10, 110), (0, 10), False, 115, 190, id="an absence is added"),
        pytest.param((0, 10), (0, 10), False, 200, 280, id="at the earliest, while it is away"),
        pytest.param(STEADY[:8], STEADY[:8], True, 75, 90, id="several, one is heard"),
        pytest.param(STEADY[:8], (0, 10), True, 75, 900, id="several, none is heard"),
        pytest.param((0, *STEADY[11:21]), (0,), True, 205, 1010, id="none is heard since an absence"),
    ],
)
def test_when_a_silent_node_will_be_lost(
    web: tuple[float, ...], nodes: tuple[float, ...], several: bool, now: float, expected: float
) -> None:
    """Of one last heard of at 0; a moment later `lost_before` agrees, and a moment before it does not."""
    found = lost_at(
        TERMS,
        web=reachability(*web),
        nodes=reachability(*nodes),
        several=several,
        heard_at=at(0),
        now=at(now),
    )
    assert found == at(expected)
    steady = reachability(*web).heard(at(now), TERMS.gap)
    proof = reachability(*nodes)
    if several and at(now) - proof.heard_at <= TERMS.gap:
        proof = replace(proof, heard_at=found)
    for later, is_lost in ((1, True), (-1, False)):
        then = found + timedelta(seconds=later)
        before = lost_before(
            TERMS, web=replace(steady, heard_at=then), nodes=proof, several=several, now=then
        )
        assert (before is not None and before > at(0)) == is_lost


def test_a_clock_that_steps_back_a_little_starts_no_new_period() -> None:
    back = reachability(*STEADY[:11], 99.9)
    assert (back.since, back.heard_at) == (at(0), at(100))
    assert lost_before(TERMS, web=back, nodes=back, several=False, now=at(99.9)) == at(9.9)
