"""Add a GPU to the catalogue from a short form of its data sheet."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.catalogue import catalogue_entries
from knowledge.catalogue.hf_config_reading import CannotAdd
from portal.clock import database_now
from trainer.written import decimal


class Command(BaseCommand):
    help = "Add a GPU model: its name as nodes report it, and four figures of its data sheet."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--memory-gib", type=decimal, required=True)
        parser.add_argument("--tflops", type=decimal, required=True, help="dense bf16 peak, no sparsity")
        parser.add_argument("--bandwidth-gb-s", type=decimal, required=True, help="of its memory")
        parser.add_argument("--link", default="pcie4", help="between GPUs of a node (pcie4)")

    def handle(self, *, name: str, link: str, **options: Any) -> None:
        figures = {key: options[key] for key in ("memory_gib", "tflops", "bandwidth_gb_s")}
        try:
            catalogue_entries.add_gpu(name=name, link=link, now=database_now(), **figures)
        except CannotAdd as wrong:
            raise CommandError(str(wrong)) from wrong
        self.stdout.write(f"{name}: {figures['memory_gib']:g} GiB, link {link}")
