"""The parts of the chaos run that decide: plans, silences, recoveries, verdicts."""

from __future__ import annotations

import random
from contextlib import nullcontext

import pytest

from tests.chaos.faults.kinds import KINDS
from tests.chaos.judging.judge import judge
from tests.chaos.judging.recovery import Struck, table
from tests.chaos.judging.report import Report
from tests.chaos.judging.silence import Silences
from tests.chaos.notes import Note
from tests.chaos.plan import Kind, plan
from tests.chaos.watch import Rows, Timeline
from tests.harness import world

LEASE_S = 15.0


def lost(heard: float, at: float, *, served: tuple[float, float] = (0, 1000)) -> str:
    """Return why alpha should not have been lost at that time, or an empty text.

    The portal answered between the two times of `served`.
    """
    answers = [(float(second), served[0] <= second <= served[1]) for second in range(200)]
    rows = [Rows(heard + 1, 1, {"alpha": ("ready", heard)})]
    return Silences(Timeline(answers=answers, rows=rows), LEASE_S).too_short("alpha", at)


def test_a_seed_gives_the_same_plan_and_no_target_is_struck_twice_at_a_time() -> None:
    about = {"lasts_s": 600.0, "lease_s": LEASE_S, "several": {"node": ("a", "b"), "control": ("control",)}}
    first, again = (list(plan(random.Random("7"), KINDS, **about)) for _ in range(2))  # type: ignore[arg-type]
    assert first == again
    assert len(first) > 60
    for fault in first:
        others = [one for one in first if one.target == fault.target and one is not fault]
        assert not any(one.at_s <= fault.at_s < one.until_s for one in others)
        assert fault.until_s <= 600


@pytest.mark.parametrize("seed", range(20))
def test_two_minutes_have_a_damaged_checkpoint_a_full_disk_and_a_lying_node(seed: int) -> None:
    several = {"node": ("a", "b", "c", "d"), "control": ("control",)}
    made = plan(random.Random(str(seed)), KINDS, lasts_s=120.0, lease_s=LEASE_S, several=several)
    always = {kind.name for kind in KINDS if kind.always}
    assert always == {"checkpoint damaged, training killed", "portal's disk full", "node lies"}
    assert always <= {fault.kind.name for fault in made}


def test_a_plan_takes_the_kinds_it_is_given() -> None:
    kind = Kind("nothing", "web", 1, (1, 2), lambda cluster, target: nullcontext())
    made = plan(random.Random(1), [kind], lasts_s=60, lease_s=LEASE_S, several={})
    assert {fault.kind for fault in made} == {kind}


def test_a_lease_counts_while_the_portal_serves() -> None:
    assert lost(heard=100, at=116) == ""
    assert lost(heard=110, at=116)
    assert lost(heard=100, at=130, served=(0, 102))
    assert lost(heard=100, at=130, served=(122, 200))
    assert lost(heard=100, at=140, served=(122, 200)) == ""


def test_the_portal_serves_while_it_answers_other_nodes() -> None:
    looks = [(at, not 103 < at < 116) for at in range(100, 117)]
    rows = [Rows(at, 1, {"alpha": ("ready", 100.0), "beta": ("ready", at - 0.5)}) for at in range(100, 117)]
    assert Silences(Timeline(answers=looks, rows=rows), LEASE_S).too_short("alpha", 116) == ""
    assert Silences(Timeline(answers=looks, rows=rows[:1]), LEASE_S).too_short("alpha", 116)


def test_a_gap_at_its_limit_is_not_held_against_the_portal() -> None:
    rows = [Rows(100, 1, {"alpha": ("ready", 100.0)})]
    looks = [(at, not 105 < at < 111) for at in range(100, 117)]
    assert Silences(Timeline(answers=looks, rows=rows), LEASE_S).too_short("alpha", 116) == ""
    looks = [(at, not 105 < at < 112) for at in range(100, 117)]
    assert Silences(Timeline(answers=looks, rows=rows), LEASE_S).too_short("alpha", 116)


def test_recovery_counts_from_the_end_of_a_fault_until_all_that_it_touches_is_well() -> None:
    nodes = {"alpha": ("ready", 108.5)}
    seen = Timeline(
        answers=[(100, True), (101, False), (106, False), (107, True)],
        rows=[Rows(at, ticks, nodes) for at, ticks in ((100, 1), (105, 2), (109, 3))],
    )
    struck = [Struck("web killed", "web", 100.5, 105), Struck("database away", "database", 100.5, 105)]
    assert [(row.kind, row.seconds) for row in table(struck[:1], seen)] == [("web killed", (2.0,))]
    assert [row.seconds for row in table(struck[1:], seen)] == [(4.0,)]
    agent = Struck("agent killed", "alpha", 103, 108)
    assert [row.seconds for row in table([agent], seen)] == [(1.0,)]
    later = Struck("web paused", "web", 108.2, 108.4)
    assert table([agent, later], seen)[0].overlapped == 1, "the portal was away before the node was heard of"


@pytest.mark.django_db
def test_the_judge_believes_notes_and_rows_and_says_where_they_differ() -> None:
    world.fake_node()
    job = world.job(name="key-1")
    world.job(name="key-2")
    world.job(name="key-2")
    notes = [
        Note(op="submit", known="unknown", key="key-1"),
        Note(op="submit", known="ok", key="key-1", job=job.pk, code=201),
        Note(op="submit", known="ok", key="gone", job="ftjob-gone", code=201),
        Note(op="submit", known="unknown", key="key-2"),
        Note(op="cancel", known="ok", job=job.pk, code=200),
        Note(op="drain", known="unknown", code=500),
    ]
    found = judge("default", notes, losses={}, silences=Silences(Timeline(), LEASE_S), nodes=2)
    reported = {(one.number, one.subject) for one in found if one.says != "every job ends"}
    assert reported == {
        ("I1", "gone"),
        ("I10", "key-2"),
        ("I12", job.pk),
        ("F", "drain "),
        ("F", "1 nodes"),
    }


def test_the_last_line_of_a_report_is_the_verdict() -> None:
    assert list(Report(title="seed 1").lines())[-1] == "no violation"
