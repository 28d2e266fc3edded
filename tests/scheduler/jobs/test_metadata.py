"""Jobs by their metadata: SQLite and PostgreSQL, which ask differently, find the same ones."""

from __future__ import annotations

from typing import Any

import pytest

from portal.accounts.models import User
from scheduler.models import Job
from scheduler.selectors.metadata import with_metadata, without_metadata
from tests.harness import world

pytestmark = [pytest.mark.django_db, pytest.mark.two_databases]
# Keys and texts that paths, patterns, placeholders or containment could take for something else.
ODD = {
    "0": "digits", "a.b": "$", '"': '"', "'; --": "%s", "%": "_", "ключ": "ñ", "{": "[1]", "null": "null",
    "A": "case", "a ": "edge", "key": "value",
}  # fmt: skip


@pytest.fixture
def jobs() -> dict[str, Job]:
    """One with each pair alone, one with all of them, one with none."""
    owner: User = world.user("ada")
    made = {}
    for name, pairs in {**{key: {key: text} for key, text in ODD.items()}, "all": ODD, "none": {}}.items():
        made[name] = world.job(owner, name="job")
        Job.objects.filter(pk=made[name].pk).update(metadata=pairs)
    return made


def found(jobs: dict[str, Job], rows: Any) -> set[str]:
    names = {job.pk: name for name, job in jobs.items()}
    return {names[pk] for pk in rows.values_list("pk", flat=True)}


def test_pairs_find_the_jobs_that_have_them_and_no_others(jobs: dict[str, Job]) -> None:
    for key, text in ODD.items():
        assert found(jobs, with_metadata(Job.objects.all(), {key: text})) == {key, "all"}, key
        others = {key: f"{text} "}, {key: text.upper() + "x"}, {f"{key}x": text}, {key: ""}, {key: "%"}
        for pairs in others:
            assert found(jobs, with_metadata(Job.objects.all(), pairs)) == set(), pairs
    assert found(jobs, with_metadata(Job.objects.all(), {"a": "case"})) == set(), "capitals differ"
    assert found(jobs, with_metadata(Job.objects.all(), {"0": "digits", "key": "value"})) == {"all"}
    assert found(jobs, with_metadata(Job.objects.all(), ODD)) == {"all"}
    assert found(jobs, with_metadata(Job.objects.all(), {})) == set(jobs)
    assert found(jobs, with_metadata(Job.objects.filter(pk=jobs["0"].pk), {"key": "value"})) == set()


def test_those_without_any_are_found(jobs: dict[str, Job]) -> None:
    assert found(jobs, without_metadata(Job.objects.all())) == {"none"}
