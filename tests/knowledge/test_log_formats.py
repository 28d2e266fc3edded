"""Logs of forms that no rule knows: a language model points at numbers, in the background, and is checked."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import override_settings

from knowledge.log_formats import asking, kept
from knowledge.log_formats.asking import ask_next_format
from knowledge.log_formats.kept import forget_old_forms, is_any_form_awaited, read_with_formats
from knowledge.models import LogFormat, ModelState
from knowledge.reading.logs.elsewhere import LogElsewhere
from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from tests.harness import world
from tests.harness.chat_server import Reply, Script, chatting

pytestmark = pytest.mark.django_db
LOG = "loading\n" + "".join(
    f"{10 * n // 60:02}:{10 * n % 60:02}:00 | fortschritt {5 * n} von 500 | fehler {3 - n / 100:.2f}\n"
    for n in range(1, 30)
)
RIGHT = {"seconds": 0, "step": 1, "total": 2, "loss": 3}


@pytest.fixture
def reader() -> User:
    return member("ada", agrees=True)


def member(name: str, *, agrees: bool) -> User:
    person = world.user(name)
    team = Team.objects.create(name=f"of {name}", language_model=agrees)
    Membership.objects.create(team=team, user=person)
    return person


def says(places: object) -> Script:
    return lambda _: json.dumps(places)


def read(reader: User, log: str = LOG) -> tuple[LogElsewhere, str]:
    return read_with_formats(reader, log, database_now())


def asked(reader: User, script: Script, log: str = LOG) -> LogFormat:
    """The row after a worker asked a server that answers by a script."""
    with chatting(script) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        assert "read the log again" in read(reader, log)[1]
        assert ask_next_format()
        assert not ask_next_format()
    return LogFormat.objects.get()


def test_a_learnt_form_is_read_for_everybody_and_its_lines_are_dropped(reader: User) -> None:
    row = asked(reader, says(RIGHT))
    assert (row.model_state, row.shape, row.samples) == (ModelState.DONE, RIGHT, [])
    found, note = read(member("ben", agrees=False))
    assert note == ""
    assert found.answers["How far is it?"].text == "It came to step 145 of 500, 29 %."
    assert found.steps_per_s == pytest.approx(5 / 600)
    assert found.answers["How far is it?"].lines[0].number == 30


def test_the_model_sees_eight_lines_with_their_numbers(reader: User) -> None:
    seen = []

    def script(request: dict[str, object]) -> str:
        seen.append(json.loads(request["messages"][1]["content"]))  # type: ignore[index]
        return json.dumps(RIGHT)

    asked(reader, script)
    assert len(seen) == 3
    assert len(seen[0]["lines"]) == 8
    assert seen[0]["lines"][0]["numbers"] == ["00:10:00", "5", "500", "2.99"]


@pytest.mark.parametrize(
    "lie",
    [
        {**RIGHT, "step": 2, "total": 1},  # no rise
        {**RIGHT, "step": 3},  # the loss is no step
        {**RIGHT, "total": 1},  # one number twice
        {**RIGHT, "loss": 99},
        {**RIGHT, "step": -1},
        {**RIGHT, "step": None},
        {**RIGHT, "step": True},
        {**RIGHT, "seconds": 3},  # a falling time
        {"step": "1"},
        {},
    ],
)
def test_a_lie_is_refused_by_the_lines(reader: User, lie: object) -> None:
    row = asked(reader, says(lie))
    assert (row.model_state, row.shape, row.samples) == (ModelState.FAILED, None, [])


@pytest.mark.parametrize(
    "reply",
    [Reply(status=500), Reply(b"no json"), Reply(b"{}", cut=True), Reply(b"x" * 1_100_000), "prose", "[1]"],
)
def test_a_broken_server_costs_its_help_alone(reader: User, reply: Reply | str) -> None:
    assert asked(reader, lambda _: reply).model_state == ModelState.FAILED


def test_a_hanging_server_keeps_the_worker_for_its_time_and_nobody_else(
    reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WITHIN_S", 0.3)
    row = asked(reader, lambda _: Reply(hang=True))
    assert row.model_state == ModelState.FAILED
    assert "does not answer" in row.model_note


def test_one_of_three_runs_cannot_outvote_two(reader: User) -> None:
    def script(request: dict[str, object]) -> str:
        return json.dumps(RIGHT if request["temperature"] else {**RIGHT, "loss": None, "total": None})

    assert asked(reader, script).shape == RIGHT


def test_lines_with_secrets_are_not_kept_or_sent(reader: User) -> None:
    with chatting(says(RIGHT)) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        assert read(reader, LOG.replace("| fehler", "| token=abcdefghijklmnop1234 | fehler"))[1] == ""
    assert not LogFormat.objects.exists()


def test_nothing_is_sent_without_a_server_or_consent(reader: User) -> None:
    assert read(reader)[1] == ""
    with chatting(says(RIGHT)) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        assert read(member("ben", agrees=False))[1] == ""
        assert not is_any_form_awaited()
        assert read(reader)[1]
        Team.objects.update(language_model=False)
        assert ask_next_format()
        assert chat.asked == []
    assert LogFormat.objects.get().samples == []


def test_what_failed_is_asked_again_after_a_day(reader: User) -> None:
    asked(reader, says({}))
    with chatting(says(RIGHT)) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        assert "did not understand" in read(reader)[1]
        assert not ask_next_format()
        LogFormat.objects.update(asked_at=database_now() - timedelta(days=1, minutes=1))
        assert "read the log again" in read(reader)[1]
        assert ask_next_format()
    assert LogFormat.objects.get().shape == RIGHT


def test_a_person_keeps_few_forms_waiting_and_silent_models_are_given_up(reader: User) -> None:
    with chatting(says(RIGHT)) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        for word in "abcdefgh":
            read(reader, LOG.replace("fortschritt", word))
    assert LogFormat.objects.count() == kept.MOST_WAITING
    later = database_now() + timedelta(minutes=6)
    assert forget_old_forms(later) == 0
    assert not is_any_form_awaited()
    assert not any(LogFormat.objects.values_list("samples", flat=True))
    assert forget_old_forms(later + timedelta(days=90)) == kept.MOST_WAITING
