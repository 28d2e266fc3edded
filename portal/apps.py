"""The Django application of the project itself.

It holds its commands and its checks of the settings.
"""

from __future__ import annotations

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        from portal.ops import checks  # noqa: F401 (registers them)
