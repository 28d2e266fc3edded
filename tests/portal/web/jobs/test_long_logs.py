"""However long a log is, a bounded part of it is read, answers are kept, and lines keep their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from django.test import Client
from rest_framework.test import APIClient

from knowledge.reading.failures.troubled_lines import LogLine
from knowledge.reading.logs.figures import LogFigures, read_figures
from portal.accounts.models import User
from portal.clock import database_now
from scheduler.models import Claim, Job, LogPiece, LogQuestion
from scheduler.selectors.analysis import log_excerpts, log_questions
from scheduler.selectors.analysis.log_excerpts import FIRST_LINES, LAST_LINES, excerpt_of
from scheduler.services.explanations import questions
from scheduler.services.explanations.failures import keep_causes
from tests.harness import world
from tests.harness.sampling import mostly_on_demand
from tests.portal.web.jobs.test_failures import failed

pytestmark = pytest.mark.one_database
CHATTY = "step 1/10 [#####     ] loss=1.2 red\n" * 1750
LARGEST = log_excerpts.BEGINNING + log_excerpts.END + 2 * len(CHATTY)  # whole pieces are read


def log_on(job: Job, pieces: Sequence[str]) -> None:
    claim = Claim.objects.get(attempt__job=job)
    for seq, text in enumerate(pieces, start=1000):
        LogPiece.objects.create(claim=claim, seq=seq, text=text, at=database_now())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[LogLine]]:
    """What questions have read of logs."""
    found: list[Sequence[LogLine]] = []

    def reading(lines: Iterable[LogLine]) -> LogFigures:
        found.append(list(lines))
        return read_figures(found[-1])

    monkeypatch.setattr(log_questions, "read_figures", reading)
    return found


@pytest.mark.parametrize(
    "piece",
    [CHATTY, "x" * 63_000, "\n" * 63_000, "a\n" * 31_500],
    ids=["chatty", "one line", "empty", "short"],
)
@pytest.mark.parametrize("count", mostly_on_demand([24, 72], [72]))
def test_a_question_reads_no_more_of_a_longer_log(
    api: APIClient, person: User, read: list[Sequence[LogLine]], piece: str, count: int
) -> None:
    job = failed(person, "Total optimization steps = 400\n")
    log_on(job, [piece] * count)
    answer = api.get(f"/api/jobs/{job.pk}/questions/", {"q": "how far is it?"})
    assert answer.status_code == 200
    (lines,) = read
    assert len(lines) <= FIRST_LINES + LAST_LINES
    assert sum(len(line.text) for line in lines) <= LARGEST
    assert lines[0] == (1, "Total optimization steps = 400\n")


def test_many_tiny_pieces_are_not_all_read(person: User) -> None:
    job = failed(person, "begun\n")
    claim = Claim.objects.get(attempt__job=job)
    LogPiece.objects.bulk_create(
        LogPiece(claim=claim, seq=1000 + number, text="tick\n", line_ends=1, at=database_now())
        for number in range(3 * log_excerpts.MOST_PIECES)
    )
    excerpt = excerpt_of(job.attempts.get())
    assert not excerpt.whole
    assert len(excerpt.lines) == 2 * log_excerpts.MOST_PIECES - 1  # the first one after the gap may be cut
    last = 1 + 3 * log_excerpts.MOST_PIECES
    assert [line.number for line in excerpt.lines[-2:]] == [last - 1, last]


def test_lines_of_the_end_keep_their_numbers_and_the_answer_says_what_was_read(
    browser: Client, api: APIClient, person: User
) -> None:
    job = failed(person, "loading\n")
    log_on(job, [*[CHATTY] * 12, "step 9/10 loss=0.5\nWarning: late\n"])
    number = 1 + 12 * 1750 + 2
    answer = api.get(f"/api/jobs/{job.pk}/questions/", {"q": "which warnings?"}).json()
    assert answer["lines"] == [{"number": number, "text": "Warning: late"}]
    assert "lines at its two ends were read" in answer["text"]
    shown = browser.get(f"/jobs/{job.pk}/?tab=log&line={number}")
    assert (number, "Warning: late") in shown.context["around"]


def test_an_answer_about_an_ended_job_is_kept(
    api: APIClient, person: User, read: list[Sequence[LogLine]]
) -> None:
    job = failed(person, "step 1/9 loss 2.1\n")
    path, how_far = f"/api/jobs/{job.pk}/questions/", {"q": "how far?"}
    first = api.get(path, how_far).json()
    assert api.get(path, how_far).json() == first
    assert len(read) == 1
    log_on(job, ["step 5/9 loss 1.1\n"])
    assert "step 5 of 9" in api.get(path, how_far).json()["text"]
    assert len(read) == 2
    assert LogQuestion.objects.count() == 1


def test_a_person_asks_one_question_at_a_time(api: APIClient, person: User) -> None:
    job = failed(person, "step 1/9 loss 2.1\n")
    with questions.turns.take(person.pk):
        answer = api.get(f"/api/jobs/{job.pk}/questions/", {"q": "how far?"})
    assert answer.status_code == 503
    assert answer["Retry-After"]
    assert api.get(f"/api/jobs/{job.pk}/questions/", {"q": "how far?"}).status_code == 200


def test_a_failed_job_s_page_reads_no_log_once_its_cause_is_kept(
    browser: Client, api: APIClient, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = "step 1/9 loss 2.1\nRuntimeError: CUDA out of memory. Tried hard\n"
    job = failed(person, log, per_device_batch_size=4)
    path = f"/api/jobs/{job.pk}/failure/"
    before = api.get(path).json()
    world.age_attempts(60)
    assert keep_causes(database_now()) == 1
    monkeypatch.setattr(log_excerpts, "_until", None)
    assert api.get(path).json() == before
    assert "more main memory" in browser.get(f"/jobs/{job.pk}/").content.decode()


def test_an_unknown_cause_is_kept_with_its_unusual_lines(
    api: APIClient, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = failed(person, "strange words here\n")
    before = api.get(f"/api/jobs/{job.pk}/failure/").json()
    assert before["failure"]["unusual"]
    world.age_attempts(60)
    keep_causes(database_now())
    monkeypatch.setattr(log_excerpts, "_until", None)
    assert api.get(f"/api/jobs/{job.pk}/failure/").json() == before
