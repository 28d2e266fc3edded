"""The knowledge app; at its start the catalogue learns where else to look for names."""

from __future__ import annotations

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    name = "knowledge"

    def ready(self) -> None:
        """Entries of the database and models in local directories come after the shipped tables."""
        from knowledge import catalogue_entries
        from knowledge.core.domain import catalogue

        catalogue.beyond.model = catalogue_entries.find_model
        catalogue.beyond.gpu = catalogue_entries.find_gpu
