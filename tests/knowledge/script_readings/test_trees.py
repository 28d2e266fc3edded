"""Readings that are kept: the same files again, one changed file, other rules, a worker's model, time."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings

from knowledge.models import ModelState, ScriptReading, SourceTree
from knowledge.reading.manifest import ScriptManifest
from knowledge.script_readings import trees
from knowledge.script_readings.asking import ask_next_script
from knowledge.script_readings.trees import KeptReading, forget_old, kept_reading, read_upload
from portal.accounts.models import Membership, Team, User
from portal.clock import database_now
from tests.harness import world
from tests.harness.chat_server import Reply, chatting

pytestmark = pytest.mark.django_db
FILES = {
    "train.py": 'knobs = {"pace": 3e-4}\n',
    "a.py": "how = dict(width=16)\n",
    "b.py": "rounds = 7\n",
    "c.yaml": "seed: 1\n",
}
COMMAND = "python train.py --seed 5"


@pytest.fixture
def owner() -> User:
    person = world.user("ada")
    Membership.objects.create(team=Team.objects.create(name="nlp", language_model=True), user=person)
    return person


def sent(owner: User, **files: str) -> KeptReading:
    changed = {name.replace("_", "."): text for name, text in files.items()}
    manifest = ScriptManifest({**FILES, **changed}, {})
    return read_upload(owner=owner, manifest=manifest, command=COMMAND, now=database_now())


def claims(request: dict[str, Any]) -> str:
    """A model that finds two values, of those that it is asked for."""
    wanted = json.loads(request["messages"][1]["content"])["wanted"]
    known = {
        "learning_rate": {"value": 3e-4, "file": "train.py", "line": 1},
        "lora_r": {"value": 16, "file": "a.py", "line": 1},
        "epochs": {"value": 7, "file": "b.py", "line": 1},
        "seed": {"value": 1, "file": "c.yaml", "line": 1},
    }
    return json.dumps({"fields": {name: row for name, row in known.items() if name in wanted}})


def by(kept: KeptReading) -> dict[str, str]:
    return {name: value.by for name, value in kept.reading.values.items()}


def test_the_same_files_again_cost_nothing(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sent(owner)
    monkeypatch.setattr(trees, "read", lambda _: pytest.fail("the rules ran again"))
    again = sent(owner)
    assert again.reading == first.reading
    assert (ScriptReading.objects.count(), SourceTree.objects.count()) == (1, 1)


def test_a_new_reader_reads_everything_again(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(owner)
    monkeypatch.setattr(trees, "reader_version", lambda: "another")
    read = []
    monkeypatch.setattr(trees, "read", lambda tree, before=trees.read: read.append(tree) or before(tree))
    sent(owner)
    assert len(read) == 1
    assert ScriptReading.objects.get().reader_version == "another"


def test_a_changed_file_is_read_again_and_no_other(owner: User) -> None:
    with chatting(claims) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        first = sent(owner)
        assert first.is_awaited
        assert by(first) == {"seed": "rules"}
        assert ask_next_script()
        found = kept_reading(owner=owner, tree_id=first.row.tree_id)
        assert found is not None
        assert by(found) == {"seed": "rules", "learning_rate": "model", "lora_r": "model", "epochs": "model"}
        requests = len(chat.asked)

        assert not sent(owner).is_awaited
        assert not ask_next_script()
        assert len(chat.asked) == requests

        changed = sent(owner, a_py="how = dict(width=32)\n")
        assert by(changed) == {"seed": "rules", "learning_rate": "model", "epochs": "model"}
        assert {"lora_r"} <= set(changed.row.wanted)
        assert not {"learning_rate", "epochs", "seed"} & set(changed.row.wanted)


def test_without_consent_no_text_leaves(owner: User) -> None:
    with chatting(claims) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        waiting = sent(owner)
        Team.objects.update(language_model=False)
        assert ask_next_script()
        assert kept_reading(owner=owner, tree_id=waiting.row.tree_id).row.model_state == ModelState.FAILED  # type: ignore[union-attr]
        assert not sent(owner, b_py="rounds = 8\n").is_awaited
        assert chat.asked == []


def test_a_server_that_fails_leaves_what_the_rules_read(owner: User) -> None:
    with (
        chatting(lambda _: Reply(status=500)) as chat,
        override_settings(LANGUAGE_SERVERS={"reader": chat.server}),
    ):
        first = sent(owner)
        ask_next_script()
        row = ScriptReading.objects.get()
        assert (row.model_state, row.model_note) == (
            ModelState.FAILED,
            f"{chat.server.host} answers with status 500.",
        )
        assert trees.reading_of(row) == first.reading


def test_readings_are_the_owners_alone(owner: User) -> None:
    own = sent(owner)
    assert kept_reading(owner=world.user("eve"), tree_id=own.row.tree_id) is None


def test_texts_and_readings_are_forgotten_in_time(owner: User) -> None:
    kept = sent(owner)
    now = database_now()
    assert forget_old(now + timedelta(days=31)) == 0
    found = kept_reading(owner=owner, tree_id=kept.row.tree_id)
    assert found is not None
    assert (found.reading, found.manifest.files) == (kept.reading, {})
    assert forget_old(now + timedelta(days=91)) == 2
    assert not ScriptReading.objects.exists()


def test_a_model_that_never_answers_is_given_up(owner: User) -> None:
    with chatting(claims) as chat, override_settings(LANGUAGE_SERVERS={"reader": chat.server}):
        sent(owner)
    forget_old(database_now() + timedelta(minutes=6))
    assert ScriptReading.objects.get().model_note == "It did not answer in time."


def test_the_oldest_trees_make_room(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_TREES", 3)
    kept = [sent(owner, b_py=f"rounds = {number}\n").row.tree_id for number in range(5)]
    assert sorted(SourceTree.objects.values_list("pk", flat=True)) == kept[2:]
    monkeypatch.setattr(trees, "MOST_BYTES", 100)
    sent(owner, b_py="rounds = 9\n")
    assert SourceTree.objects.count() == 1
