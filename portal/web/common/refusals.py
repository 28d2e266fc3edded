"""The form errors or the answer that a service's or selector's refusal becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404

from knowledge.predictors.model_registry import NoSuchPredictor, PromotionError
from portal.accounts.errors import AccountError
from portal.accounts.requests import PageRequest
from scheduler.errors import NotFound, SchedulerError

P = ParamSpec("P")
T = TypeVar("T")


def or_404(get: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a selector finds for these arguments.

    Raises Http404 where it finds nothing.
    """
    try:
        return get(*args, **kwargs)
    except NotFound as unknown:
        raise Http404 from unknown


@contextmanager
def refusals_shown(request: PageRequest, but: type[SchedulerError] | None = None) -> Iterator[None]:
    """Have the page that comes next say why a service refused, in its words.

    Raises Http404 for what does not exist, PermissionDenied for what the person may not do, and what `but`
    names.
    """
    try:
        yield
    except (NotFound, NoSuchPredictor) as unknown:
        raise Http404 from unknown
    except PermissionDenied:
        raise
    except (SchedulerError, AccountError, PromotionError) as refused:
        if but and isinstance(refused, but):
            raise
        messages.warning(request, str(refused))
