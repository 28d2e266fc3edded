"""The wheel of the client, which programs and people install from their portal."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from client.foretune import __version__
from portal import wheels
from portal.http.downloads import download
from portal.http.error_pages import answer

NAME = f"foretune-{__version__}-py3-none-any.whl"


def client_address(request: HttpRequest) -> str:
    """What pip and uv install."""
    return request.build_absolute_uri(reverse("client-wheel", args=[NAME]))


@require_safe
def client_line(request: HttpRequest) -> HttpResponse:
    """The address of the wheel, as a line of text that a shell installs."""
    return HttpResponse(f"{client_address(request)}\n", content_type="text/plain; charset=utf-8")


@require_safe
def client_wheel(request: HttpRequest, wheel: str) -> HttpResponseBase:
    """The wheel of this release by its file name, for everybody, as the sources."""
    if wheel != NAME:
        remedy = f"It is {client_address(request)}."
        return answer(request, 404, ("not_found", "The client of this portal is another one", remedy))
    try:
        file = wheels.wheel(wheels.CLIENT, Path(settings.DATA_DIR) / "packages")
    except wheels.BuildFailed as failed:
        return answer(request, 503, ("no_package", "The client cannot be offered now", f"{failed}"))
    return download(request, file, sha256=wheels.sha256_of(file), attached_as=NAME)
