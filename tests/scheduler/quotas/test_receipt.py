"""A team's receipt, beside a reference that counts second by second."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.accounts.models import Team
from portal.clock import database_now
from portal.web.charts.team_usage import in_words
from scheduler.core.quotas.receipt import GpuSpan, receipts
from scheduler.loop.tick import tick
from scheduler.models import Allocation
from scheduler.selectors.analysis.analytics import utilisation
from scheduler.selectors.analysis.period import Period
from scheduler.selectors.analysis.spending import visible_spending
from scheduler.selectors.analysis.team_usage import team_usage
from scheduler.services.quotas import QuotaValues, set_quotas
from tests.harness import world

SECONDS = 12
TEAMS = ("a", "b", "")
spans = st.lists(
    st.builds(
        lambda team, start, length, gpus: GpuSpan(team, float(start), float(start + length), gpus),
        st.sampled_from(TEAMS), st.integers(-3, SECONDS), st.integers(0, 8), st.integers(1, 3),
    ),
    max_size=8,
)  # fmt: skip


@given(held=spans, owed=spans)
def test_a_count_second_by_second_gives_the_same(held: list[GpuSpan], owed: list[GpuSpan]) -> None:
    owed = [span for span in owed if span.team]
    edges = [0.0, 5.0, float(SECONDS)]
    found = receipts(held, owed, "a", edges)
    for part, (begin, end) in zip(found, ((0, 5), (5, SECONDS)), strict=True):
        wanted = [0.0, 0.0, 0.0, 0.0]
        for second in range(begin, end):
            used, due = ({team: at(second, team, spans) for team in TEAMS} for spans in (held, owed))
            borrowed = sum(max(0, used[team] - due[team]) for team in TEAMS)
            idle = sum(max(0, due[team] - used[team]) for team in TEAMS)
            wanted[0] += due["a"]
            wanted[1] += used["a"]
            wanted[2] += max(0, due["a"] - used["a"]) * min(borrowed, idle) / idle if idle else 0
            wanted[3] += max(0, used["a"] - due["a"])
        got = [part.guaranteed_s, part.used_s, part.lent_s, part.borrowed_s]
        assert got == pytest.approx(wanted)


def at(second: int, team: str, spans: list[GpuSpan]) -> int:
    return sum(span.gpus for span in spans if span.team == team and span.start <= second < span.end)


@pytest.mark.django_db
def test_without_any_quota_nothing_is_borrowed() -> None:
    world.fake_node(slots=1)
    team = Team.objects.create(name="vision")
    world.job(world.user(), team=team)
    assert tick().started == 1
    now = database_now()
    Allocation.objects.update(allocated_at=now - timedelta(hours=2))
    (found,) = team_usage(team, Period(now - timedelta(hours=3), now), now)
    assert (found.quotas, found.total.borrowed_s) == (False, 0.0)
    assert in_words(found.total, quotas=found.quotas) == "No quota is set: the team used 2.0 GPU-hours."


@pytest.mark.django_db
def test_what_a_team_used_is_what_its_spending_says() -> None:
    world.fake_node(slots=3)
    ada, admin, now = world.user(), world.admin(), database_now()
    team = Team.objects.create(name="vision")
    for _ in range(2):
        world.job(ada, team=team)
    world.job(ada)
    assert tick().started == 3
    start = now - timedelta(hours=3)
    Allocation.objects.update(allocated_at=start + timedelta(minutes=7))
    one = Allocation.objects.filter(claim__attempt__job__team=team).first()
    assert one
    Allocation.objects.filter(pk=one.pk).update(released_at=start + timedelta(minutes=67))
    set_quotas(team=team, quotas=[QuotaValues(guaranteed=1)], actor=admin, now=start + timedelta(hours=1))
    period = Period(start, now)
    total = team_usage(team, period, now)[0].total
    by_team = {line.name: line.gpu_s for line in visible_spending(admin, period, period.end).by_team}
    assert total.used_s == pytest.approx(by_team["vision"])
    assert total.guaranteed_s == pytest.approx(2 * 3600)
    # Two GPUs were held for 53 minutes before it had a quota, and both for 7 more.
    assert total.borrowed_s == pytest.approx(2 * 53 * 60 + 7 * 60)
    assert total.lent_s == 0


@pytest.mark.django_db
def test_receipt_utilisation_and_spending_end_at_one_moment() -> None:
    world.fake_node(slots=2)
    ada, admin, now = world.user(), world.admin(), database_now().replace(second=17, microsecond=250_000)
    team = Team.objects.create(name="vision")
    world.job(ada, team=team)
    assert tick().started == 1
    Allocation.objects.update(allocated_at=now - timedelta(minutes=7, seconds=3))
    minute = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    period = Period(minute - timedelta(hours=24), minute)
    spent = visible_spending(admin, period, now).total.gpu_s
    assert spent == pytest.approx(423, abs=0.01)
    assert team_usage(team, period, now)[0].total.used_s == pytest.approx(spent, abs=0.01)
    assert sum(utilisation(admin, period, now).held) == pytest.approx(spent, abs=0.01)
