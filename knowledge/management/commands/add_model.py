"""Add a model to the catalogue from its config.json."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.catalogue import catalogue_entries
from knowledge.catalogue.hf_config_reading import CannotAdd, config_text
from portal.clock import database_now


class Command(BaseCommand):
    help = "Add a model from a config.json, a folder that holds one, or a hub id (HF_ENDPOINT: another hub)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", metavar="PATH|HUB_ID")
        parser.add_argument("--name", help="under which jobs ask for it (the place as given)")

    def handle(self, *, place: str, name: str | None, **_: Any) -> None:
        try:
            text = config_text(place)
            entry = catalogue_entries.add_model(text=text, name=name or place, now=database_now())
        except CannotAdd as wrong:
            raise CommandError(str(wrong)) from wrong
        self.stdout.write(f"{entry.name}: {entry.facts['parameters'] / 1e9:.2f} billion parameters")
