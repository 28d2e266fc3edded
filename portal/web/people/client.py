"""The wheel of the client, which programs and people install from their portal."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from client.foretune import __version__
from portal import wheels
from portal.http.downloads import download
from portal.http.error_pages import answer

NAME = f"foretune-{__version__}-py3-none-any.whl"


@require_safe
def client_wheel(request: HttpRequest, wheel: str) -> HttpResponseBase:
    """The wheel of this release by its file name, for everybody, as the sources."""
    if wheel != NAME:
        raise Http404
    try:
        file = wheels.wheel(wheels.CLIENT, Path(settings.DATA_DIR) / "packages")
    except wheels.BuildFailed as failed:
        return answer(request, 503, ("no_package", "The client cannot be offered now", f"{failed}"))
    return download(request, file, sha256=wheels.sha256_of(file), attached_as=NAME)
