"""The knowledge app; at its start the catalogue learns where else to look for names."""

from __future__ import annotations

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    name = "knowledge"

    def ready(self) -> None:
        """Entries of the database and models in local directories come after the shipped tables."""
        from knowledge import additions
        from knowledge.core import catalog

        catalog.beyond.model = additions.find_model
        catalog.beyond.gpu = additions.find_gpu
