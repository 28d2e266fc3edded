"""Front-end files of installed packages.

What no Python package carries lies in static/vendor/, with a paragraph in NOTICE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage, Storage


def _folder(package: str, inside: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImproperlyConfigured(f"{package} is not installed; install requirements/core.lock")
    return Path(next(iter(spec.submodule_search_locations))) / inside


class PackageFinder(BaseFinder):
    """A finder of exactly the files that pages use.

    django-htmx and Swagger UI bring their own static folders.
    """

    FILES = {
        "bootstrap": (
            "xstatic.pkg.bootstrap",
            "data",
            ("css/bootstrap.min.css", "js/bootstrap.bundle.min.js"),
        ),
    }

    def __init__(self, *_: Any, **__: Any) -> None:
        self.storages: dict[str, FileSystemStorage] = {}
        for prefix, (package, inside, _files) in self.FILES.items():
            storage = FileSystemStorage(location=_folder(package, inside))
            storage.prefix = prefix  # type: ignore[attr-defined]
            self.storages[prefix] = storage

    def check(self, **_: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **_: Any) -> Any:
        """The file's place on disk, or an empty list, as Django's own finders have it."""
        found = [
            storage.path(name)
            for name, storage in self._all()
            if path == f"{storage.prefix}/{name}"  # type: ignore[attr-defined]
        ]
        return found[0] if found and not find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        yield from self._all()

    def _all(self) -> Iterator[tuple[str, FileSystemStorage]]:
        for prefix, (_package, _inside, files) in self.FILES.items():
            for name in files:
                yield name, self.storages[prefix]
