"""The client of a Foretune portal, of the portal's own release."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ._async.client import AsyncClient as AsyncClient
    from ._async.jobs import AsyncJob as AsyncJob
    from ._errors import ApiError as ApiError
    from ._errors import BadRequest as BadRequest
    from ._errors import BrokenDownload as BrokenDownload
    from ._errors import Conflict as Conflict
    from ._errors import ForetuneError as ForetuneError
    from ._errors import JobFailed as JobFailed
    from ._errors import NotAllowed as NotAllowed
    from ._errors import NotConfigured as NotConfigured
    from ._errors import NotFound as NotFound
    from ._errors import NotSignedIn as NotSignedIn
    from ._errors import PlanOutdated as PlanOutdated
    from ._errors import ServerError as ServerError
    from ._errors import Throttled as Throttled
    from ._errors import Unavailable as Unavailable
    from ._errors import Unreachable as Unreachable
    from ._errors import WaitedTooLong as WaitedTooLong
    from ._models import File as File
    from ._models import Plan as Plan
    from ._models import Update as Update
    from ._sync.client import Client as Client
    from ._sync.jobs import Job as Job

_PLACES = {
    "_async.client": ("AsyncClient",),
    "_async.jobs": ("AsyncJob",),
    "_sync.client": ("Client",),
    "_sync.jobs": ("Job",),
    "_models": ("File", "Plan", "Update"),
    "_errors": (
        *("ApiError", "BadRequest", "BrokenDownload", "Conflict", "ForetuneError", "JobFailed", "NotAllowed"),
        *("NotConfigured", "NotFound", "NotSignedIn", "PlanOutdated", "ServerError", "Throttled"),
        *("Unavailable", "Unreachable", "WaitedTooLong"),
    ),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}
__all__ = [*sorted(_PLACE), "__version__"]


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for.

    The command line needs none of them to start.
    """
    if name not in _PLACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_PLACE[name]}", __name__), name)
