"""All addresses of the portal, door by door."""

from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [path("admin/", admin.site.urls)]
if find_spec("portal.nodes.urls"):
    urlpatterns.append(path("agent/v1/", include("portal.nodes.urls")))
