"""Decisions of the live loop: kept when they are news, made again, and forgotten in time."""

from __future__ import annotations

import importlib
import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.clock import database_now
from scheduler.loop import recording
from scheduler.loop.apply import Applied
from scheduler.loop.options import option_sets
from scheduler.loop.options.option_refresh import refresh_options
from scheduler.loop.tick import tick
from scheduler.models import Decision, DecisionJob, Job, OptionSet
from scheduler.selectors.decisions import explain
from scheduler.services.decisions import forget_old_decisions
from scheduler.services.policy import choose_policy
from tests.harness import world
from tests.harness.preempting import preempting
from trainer import __version__

pytestmark = pytest.mark.django_db
ONE_GPU = {"number_gpus": 1}


def choose(name: str, **parameters: Any) -> None:
    choose_policy(name=name, parameters=parameters, actor=world.admin(), reason="test", now=database_now())


def verbs() -> list[tuple[str, str, str]]:
    """Verb, code and job of all that is kept, oldest first."""
    return list(DecisionJob.objects.order_by("pk").values_list("verb", "code", "job"))


def replayed(*ids: int, **options: Any) -> str:
    out = io.StringIO()
    call_command("replay_decision", *map(str, ids), stdout=out, **options)
    return out.getvalue()


def test_starts_and_new_reasons_are_kept_and_the_same_again_is_not() -> None:
    waits = world.job(params=ONE_GPU)
    tick()
    tick()
    assert verbs() == [("wait", "no-option", waits.pk)]
    world.fake_node(slots=1)
    refresh_options()
    other = world.job(params=ONE_GPU)
    tick()
    tick()
    assert verbs()[1:] == [("start", "", waits.pk), ("wait", "busy", other.pk)]
    first, second = Decision.objects.order_by("pk")
    assert (second.policy, second.parameters, second.release) == ("easy", {}, __version__)
    assert second.size == len(second.input) + len(second.plan)
    assert replayed(second.pk, first.pk).count("identical") == 2
    assert replayed(all=True).endswith("2 decisions, all identical.\n")


def test_a_job_that_may_not_start_yet_is_kept_as_one_that_waits() -> None:
    """No policy saw it."""
    world.fake_node(slots=2)
    later = world.job(params=ONE_GPU, begin_at=database_now() + timedelta(days=1))
    tick()
    tick()
    now = world.job(params=ONE_GPU)
    tick()
    assert verbs() == [("wait", "begin-time", later.pk), ("start", "", now.pk)]
    assert replayed(all=True).endswith("2 decisions, all identical.\n")
    explained = explain(DecisionJob.objects.get(job=later))
    assert explained.summary.here.startswith("It may not start before")
    assert explained.options == []


def test_a_decision_that_cannot_be_carried_out_yet_is_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is made."""
    world.fake_node(slots=1)
    job = world.job(params=ONE_GPU)
    with monkeypatch.context() as nothing_applies:
        nothing_applies.setattr("scheduler.loop.tick.apply", lambda *_: Applied(0, whole=True))
        tick()
        tick()
    assert verbs() == [("start", "", job.pk)]
    assert tick().started == 1


def test_a_decision_that_takes_several_ticks_is_kept_once(settings: Any) -> None:
    """A later tick keeps what is new alone; another process cannot tell that, and keeps all."""
    settings.CHANGES_PER_TICK = 1
    world.fake_node(slots=3)
    jobs = [world.job(params=ONE_GPU) for _ in range(3)]
    assert tick().started == tick().started == 1
    assert verbs() == [("start", "", job.pk) for job in jobs]
    new = world.job(params=ONE_GPU)
    assert tick().started == 1
    assert verbs()[3:] == [("wait", "busy", new.pk)]
    world.fake_node(slots=2)
    refresh_options()
    settings.CHANGES_PER_TICK = 0
    tick()
    importlib.reload(recording)
    last = world.job(params=ONE_GPU)
    tick()
    assert verbs()[4:] == [("start", "", new.pk), ("start", "", new.pk), ("start", "", last.pk)]
    assert replayed(all=True).endswith("all identical.\n")


def test_a_stop_and_the_start_it_is_for_are_one_decision() -> None:
    choose("las")
    turn = preempting()
    assert {("start", "", turn.taker.pk), ("preempt", "rank", turn.victim.pk)} <= {*verbs()}
    assert DecisionJob.objects.get(verb="preempt").decision.policy == "las"
    assert replayed(all=True).endswith("all identical.\n")


def test_what_a_solver_found_is_kept_and_it_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    choose("sia", min_run_s=5.0)
    world.fake_node(slots=2)
    job = world.job()
    tick()
    assert verbs() == [("start", "", job.pk)]
    assert Decision.objects.get().parameters == {"min_run_s": 5.0}
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: 1 / 0)
    assert "identical, 1 action" in replayed(Decision.objects.get().pk)


def test_options_are_stored_once_whatever_the_number_of_decisions() -> None:
    owner = world.user()
    file = world.data_file(owner)
    world.fake_node(slots=1)
    for _ in range(3):
        world.job(owner, training_file=file, params=ONE_GPU)
        tick()
    assert Decision.objects.count() == 3
    assert OptionSet.objects.count() == 1
    importlib.reload(option_sets)  # as in another process
    world.job(owner, training_file=file, params=ONE_GPU)
    OptionSet.objects.update(used_on="2020-01-01")
    tick()
    assert OptionSet.objects.get().used_on == database_now().date()
    assert replayed(all=True).endswith("4 decisions, all identical.\n")


def test_a_record_that_fails_holds_no_decision_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.fake_node(slots=1)
    world.job(params=ONE_GPU)
    monkeypatch.setattr(recording, "pack_input", lambda *_: 1 / 0)
    assert tick().started == 1
    assert "a row was left as it is" in caplog.text
    assert not Decision.objects.exists()


def kept(days_ago: float, size: int = 10) -> Decision:
    at = database_now() - timedelta(days=days_ago)
    found = Decision.objects.create(
        at=at, policy="fifo", digest=str(days_ago), size=size, input=b"", plan=b""
    )
    OptionSet.objects.create(digest=f"{days_ago}", used_on=at.date(), size=0, options=b"")
    return found


def test_old_decisions_are_forgotten_with_the_options_that_only_they_name(settings: Any) -> None:
    settings.DECISION_KEEP_DAYS = 30.0
    old, new, newest = kept(31), kept(29), kept(0.1)
    DecisionJob.objects.create(decision=old, job=world.job(), verb="start")
    assert forget_old_decisions(database_now()) == 1
    assert {*Decision.objects.all()} == {new, newest}
    assert {options.digest for options in OptionSet.objects.all()} == {"29", "0.1"}
    assert Job.objects.count() == 1
    assert forget_old_decisions(database_now()) == 0


def test_the_oldest_go_first_where_all_are_too_large(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DECISION_KEEP_BYTES = 250
    rows = [kept(5 - number, size=100) for number in range(5)]
    monkeypatch.setattr("scheduler.services.decisions.AT_ONCE", 2)
    assert [forget_old_decisions(database_now()) for _ in range(3)] == [2, 1, 0]
    assert {*Decision.objects.all()} == {*rows[3:]}


def test_the_command_names_what_differs_and_what_cannot_be_read() -> None:
    world.fake_node(slots=2)
    world.job(params=ONE_GPU)
    tick()
    decision = Decision.objects.get()
    with pytest.raises(CommandError, match="No decision 77 is kept"):
        replayed(decision.pk, 77)
    with pytest.raises(CommandError, match="or give --all"):
        replayed()
    Decision.objects.update(policy="gone")
    with pytest.raises(CommandError, match=r"1 decision of 1 came out otherwise"):
        replayed(decision.pk)
    Decision.objects.update(policy="fifo", input=b"of another release")
    out = io.StringIO()
    with pytest.raises(CommandError, match="came out otherwise"):
        call_command("replay_decision", "--all", stdout=out)
    assert "cannot be made again. It is damaged" in out.getvalue()
    assert f"made by release {__version__}" in out.getvalue()
