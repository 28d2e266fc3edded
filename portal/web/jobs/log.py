"""Searching a job's log."""

from __future__ import annotations

from django import forms

from scheduler.models import Job
from scheduler.selectors.jobs import log_text

# A log is read this far; a longer one is fetched over the API.
SEARCHED_CHARACTERS = 5_000_000
SHOWN_LINES = 500


class LogSearch(forms.Form):
    q = forms.CharField(
        required=False,
        max_length=200,
        label="Search the log",
        widget=forms.TextInput(attrs={"class": "form-control form-control-sm", "type": "search"}),
    )

    def lines_of(self, job: Job) -> list[tuple[int, str]]:
        """Numbered lines that hold the text, whatever its case; the first ones only."""
        wanted = self.cleaned_data["q"].casefold()
        text, _ = log_text(job, limit=SEARCHED_CHARACTERS)
        numbered = enumerate(text.splitlines(), start=1)
        found = ((number, line) for number, line in numbered if wanted in line.casefold())
        return [line for line, _ in zip(found, range(SHOWN_LINES), strict=False)]
