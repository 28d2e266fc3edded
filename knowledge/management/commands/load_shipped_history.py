"""Load the executions that come with the project."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from django.core.management.base import BaseCommand

from knowledge.importing.service import load_shipped
from portal.clock import database_now


class Command(BaseCommand):
    help = "Load the shipped history; rows that are there already stay, those of an older version go."

    def handle(self, **_: Any) -> None:
        data = (files("knowledge") / "data").iterdir()
        shipped = [entry for entry in data if entry.name.startswith("executions")]
        texts = [entry.read_text(encoding="utf-8") for entry in sorted(shipped, key=lambda entry: entry.name)]
        report, gone = load_shipped(texts=texts, now=database_now())
        replaced = f"; {gone} of an older version removed" if gone else ""
        self.stdout.write(f"{report}{replaced}")
