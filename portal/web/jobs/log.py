"""Searching a job's log, and asking it."""

from __future__ import annotations

from itertools import islice

from django import forms

from knowledge.reading.logs.questions import LONGEST_QUESTION, QUESTIONS
from portal.web.common.form_base import SearchField
from portal.web.common.number_fields import WholeNumberField
from scheduler.models import Job
from scheduler.selectors.jobs import log_text
from trainer.written import composed

# A log is read this far; a longer one is fetched over the API.
SEARCHED_CHARACTERS = 5_000_000
SHOWN_LINES = 500
AROUND = 15  # lines before and after the one that a link leads to


class LogSearch(forms.Form):
    q = SearchField(
        required=False,
        max_length=200,
        label="Search the log",
        widget=forms.TextInput(attrs={"class": "form-control form-control-sm", "type": "search"}),
    )

    ask = SearchField(
        required=False,
        max_length=LONGEST_QUESTION,
        label="Ask the log",
        widget=forms.TextInput(
            attrs={
                "class": "form-control form-control-sm",
                "list": "log-questions",
                "placeholder": QUESTIONS[0],
            }
        ),
    )
    line = WholeNumberField(required=False, min_value=1, max_value=10**9, widget=forms.HiddenInput)

    def lines_around(self, job: Job) -> list[tuple[int, str]]:
        """The line that a link leads to, between its neighbours."""
        line: int = self.cleaned_data["line"]
        numbered = enumerate(_lines(job), start=1)
        return list(islice(numbered, max(0, line - 1 - AROUND), line + AROUND))

    def lines_of(self, job: Job) -> list[tuple[int, str]]:
        """Numbered lines that hold the text, whatever its case; the first ones only."""
        wanted = self.cleaned_data["q"].casefold()
        numbered = enumerate(_lines(job), start=1)
        found = ((number, line) for number, line in numbered if line and wanted in composed(line).casefold())
        return [line for line, _ in zip(found, range(SHOWN_LINES), strict=False)]


def _lines(job: Job) -> list[str]:
    text, _ = log_text(job, limit=SEARCHED_CHARACTERS)
    return text.splitlines()
