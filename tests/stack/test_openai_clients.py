"""Unmodified clients of OpenAI against a live portal that trains, by address and key alone.

One of them runs with every suite; the others, with the newest of each major, on demand.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.models import Job
from scheduler.states import TERMINAL
from tests.harness.losing_proxy import counted, losing_answers
from tests.harness.stack import Stack, until
from tests.stack.environments import binaries

STORIES = Path(__file__).with_name("openai_clients")
COUNT = "x-stainless-retry-count"
LOST = 100  # answers, of each major


def environ(stack: Stack, url: str = "") -> dict[str, str]:
    """Only what a person would set."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "LANG")}
    return {**kept, "OPENAI_BASE_URL": f"{url or stack.url}/v1", "OPENAI_API_KEY": stack.token}


def told(stack: Stack, client: str, story: str, *arguments: str, url: str = "") -> str:
    """What a story prints. Raises AssertionError with its words where it fails."""
    command = [binaries(client) / "python", STORIES / story, *arguments]
    env = environ(stack, url)
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.fixture
def rows(judged: Stack, tmp_path: Path) -> Iterator[str]:
    """A file to train on; afterwards, what a story has cancelled is waited for."""
    lines = (judged.root / "corpus.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "rows.jsonl").write_text("".join(lines[:30]))
    yield str(tmp_path / "rows.jsonl")
    live = Job.objects.using(judged.alias).exclude(state__in=TERMINAL)
    until(lambda: not live.exists() and not judged.trainings(), every_s=0.2, what="the end of all jobs")


def test_the_newest_client_trains_here_from_upload_to_deletion(judged: Stack, rows: str) -> None:
    assert told(judged, "openai-3", "story.py", "sync", rows).endswith("told\n")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["sync", "async", "azure"])
@pytest.mark.parametrize("client", ["openai-1", "openai-2.8", "openai-2", "openai-3"])
def test_every_client_of_openai_trains_here(judged: Stack, rows: str, client: str, way: str) -> None:
    assert told(judged, client, "story.py", way, rows).endswith("told\n")


@pytest.mark.slow
def test_litellm_trains_here(judged: Stack, rows: str) -> None:
    assert told(judged, "litellm", "litellm_story.py", rows).endswith("told\n")


@pytest.mark.slow
def test_the_engine_of_llama_index_trains_here_and_does_not_ask_for_ever(judged: Stack, rows: str) -> None:
    assert told(judged, "llama-index", "llama_index_story.py", rows).endswith("told\n")


@pytest.mark.slow
@pytest.mark.parametrize("client", ["openai-1", "openai-2.8"])  # later ones have no such script
def test_the_console_script_trains_here(judged: Stack, rows: str, client: str) -> None:
    def said(*words: str) -> str:
        command = [binaries(client) / "openai", "api", *words]
        done = subprocess.run(command, env=environ(judged), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    uploaded = said("files.create", "-f", rows, "-p", "fine-tune")
    file = next(word.strip('",') for word in uploaded.split() if word.startswith('"file-'))
    made = said("fine_tuning.jobs.create", "-m", "builtin/tiny-llama", "-F", file)
    job = next(word.strip('",') for word in made.split() if word.startswith('"ftjob-'))
    assert job in said("fine_tuning.jobs.list")
    assert "ftevent-" in said("fine_tuning.jobs.list_events", "-i", job)
    assert "cancelled" in said("fine_tuning.jobs.cancel", "-i", job)
    assert "builtin/tiny-llama" in said("models.list")


@pytest.mark.slow
@pytest.mark.parametrize("client", ["openai-1", "openai-2", "openai-3"])
def test_lost_answers_make_no_second_job(judged: Stack, rows: str, client: str) -> None:
    before = Job.objects.using(judged.alias).count()
    with losing_answers(judged.url, is_first=counted(COUNT)) as (url, lost):
        ids = told(judged, client, "lost_answers.py", rows, str(LOST), url=url).split()
    jobs = Job.objects.using(judged.alias)
    try:
        assert len(lost) == LOST + 1
        assert len(set(ids)) == len(ids) == LOST == jobs.count() - before
    finally:
        for job_id in ids:
            judged.client.post(f"jobs/{job_id}/cancel/")
