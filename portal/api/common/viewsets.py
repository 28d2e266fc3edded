"""The base of all resources: viewsets that refuse what they do not know.

A resource says by action what it takes and tells; `portal/api/people/teams.py` shows one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.urls import URLPattern, path
from django.utils.functional import cached_property
from django_filters.rest_framework import DjangoFilterBackend, FilterSet, MultipleChoiceFilter
from rest_framework.pagination import BasePagination
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import GenericViewSet

from portal.accounts.permissions import AdminOnly
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer
from portal.api.common.idempotent import create, create_with_secret, created, in_one_transaction
from portal.api.common.ids import name_field, row_of
from portal.api.common.pages import CursorPages, ordered, read_query
from portal.api.common.views import StrictView
from portal.clock import database_now
from scheduler.services.idempotency import Creation

Row = TypeVar("Row", bound=Model)


class NoBody(StrictSerializer):
    """An action that takes no body."""


class Resource(StrictView, GenericViewSet[Any]):
    """A noun of the API.

    By action `about` describes what DRF brings, `takes` has the body, `tells` the answer where it is not told
    by `serializer_class`, and `query` the query parameters. `orders` has the words of `order=` with the
    fields of rows, `filterset_class` the filters. A body where none is taken is refused as well.
    """

    request: ApiRequest
    about: ClassVar[Mapping[str, str]] = {}
    takes: ClassVar[Mapping[str, type[BaseSerializer[Any]]]] = {}
    tells: ClassVar[Mapping[str, Any]] = {}
    orders: ClassVar[Mapping[str, str]] = {}
    filterset_class: type[FilterSet] | None = None
    filter_backends = (DjangoFilterBackend,)
    pagination_class: type[BasePagination] | None = CursorPages
    noun: ClassVar[str]
    takes_files: Any = None  # of an action: which (portal.limits.bodies)
    is_named: ClassVar[bool] = True  # its rows are found by their names as well

    def read_parameters(self, request: Request) -> dict[str, Any]:
        filters = self.filter_names(request)
        lists = {name for name, one in filters.items() if isinstance(one, MultipleChoiceFilter)}
        asked = self.query_class(self.action)
        values = read_query(asked, self.query_of(request), filters=filters, lists=lists)
        if request.method not in SAFE_METHODS and self.action and self.action not in self.takes:
            NoBody(data=request.data).is_valid(raise_exception=True)
        return values

    def filter_names(self, request: Request) -> Mapping[str, Any]:
        """The filters that the address may name."""
        return self.filterset_class.base_filters if self.filterset_class and self.action == "list" else {}

    @cached_property
    def now(self) -> datetime:
        return database_now()

    @property
    def by(self) -> dict[str, Any]:
        """Who acts, and when, as services take it."""
        return {"actor": self.request.user, "now": self.now}

    def query_class(self, asked: str) -> type[StrictSerializer]:
        return ordered(self.orders) if asked == "list" else super().query_class(asked)

    def body(self) -> dict[str, Any]:
        """The checked body; of a PATCH the fields that were sent. Raises ValidationError."""
        taken = self.takes[self.action](
            data=self.request.data,
            context=self.get_serializer_context(),
            partial=self.request.method == "PATCH",
        )
        taken.is_valid(raise_exception=True)
        return dict(taken.validated_data)

    def tell(self, row: Any, status: int = 200) -> Response:
        """Answer with a row."""
        return Response(self.shown(row), status=status)

    def shown(self, row: Any) -> Any:
        return self.get_serializer(row).data

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        told = self.tells.get(self.action)
        return told if isinstance(told, type) else super().get_serializer_class()

    def get_object(self) -> Any:
        """The row that the address names; None where there is but one thing.

        Raises NotFound.
        """
        text = self.kwargs.get(self.lookup_url_kwarg or self.lookup_field)
        return None if text is None else self.row_named(self.get_queryset(), text)

    def row_to_change(self) -> Any:
        return self.get_object() if self.detail else None

    def read_again(self, request: Request, *args: Any, **kwargs: Any) -> Response | None:
        """What GET answers now, at the address of a verb of its object."""
        is_verb = self.detail and next(reversed(kwargs)) == self.lookup_url_kwarg
        read = self.action_map.get("get") or ("retrieve" if is_verb else "")
        if not hasattr(self, read):
            return None
        asked, self.action = self.action, read
        try:
            self.parameters = read_query(self.query_class(read), QueryDict())
            answer: Response = getattr(self, read)(request, *args, **kwargs)
            return answer
        finally:
            self.action = asked

    def row_named(self, rows: QuerySet[Row], text: str, noun: str = "") -> Row:
        """The row of an id or a name. Raises NotFound."""
        return row_of(rows, text, noun or self.noun, name_field(rows.model) if self.is_named else "")

    def made(self, make: Callable[[], Model], load: Callable[[Any], Model] | None = None) -> Response:
        """Answer to a creation, which may be repeated under its key.

        load: finds the row by its key; the rows of the list unless given.
        """
        return self.made_by(in_one_transaction(make), load)

    def made_by(
        self, make: Callable[[Creation], Model], load: Callable[[Any], Model] | None = None
    ) -> Response:
        """The same for services that note the key in a transaction of their own."""
        row, new = create(self.request, make=make, load=load or self.row_of_key)
        return self._created(self.shown(self.row_of_key(row.pk) if load is None else row), new)

    def made_with_secret(
        self,
        make: Callable[[], tuple[Row, str]],
        secret: str,
        *,
        load: Callable[[Any], Row] | None = None,
        told: type[BaseSerializer[Any]] | None = None,
        path: str = "",
    ) -> Response:
        """Answer to a creation with a secret, which is shown once under this name.

        load: finds the row by its key; the rows of the list unless given. told: the row without the secret;
        the resource's own unless given. path: below which the row is, if it is not the request's.
        """
        row, plain = create_with_secret(self.request, make=make, load=load or self.row_of_key)
        shown = (told or super().get_serializer_class())(row, context=self.get_serializer_context()).data
        return self._created({**shown, secret: plain}, plain is not None, path)

    def _created(self, shown: Mapping[str, Any], new: bool, path: str = "") -> Response:
        return created(shown, path=f"{path or self.request.path}{shown['id']}/", made=new)

    def row_of_key(self, key: Any) -> Any:
        return self.get_queryset().get(pk=key)

    def pages(self, rows: QuerySet[Any], shown: type[BaseSerializer[Any]]) -> Response:
        """A piece of a list that belongs to one object; its `query` is a PageQuery."""
        pages = CursorPages()
        piece = pages.paginate_queryset(rows, self.request, self)
        return pages.get_paginated_response(
            shown(piece, many=True, context=self.get_serializer_context()).data
        )


class AdminResource(Resource):
    """A resource for administrators alone."""

    permission_classes = (AdminOnly,)


class AdminWrites(Resource):
    """Everyone reads; only administrators change something."""

    def get_permissions(self) -> list[Any]:
        return [*super().get_permissions()] if self.request.method in SAFE_METHODS else [AdminOnly()]


def one(address: str, resource: type[Resource], **actions: str) -> URLPattern:
    """The address of what there is once; actions: by method, in lower case."""
    basename = address.rstrip("/").replace("/", "_").replace("-", "_")
    return path(address, resource.as_view({**actions}, basename=basename))


def router(resources: Mapping[str, type[Resource]]) -> SimpleRouter:
    """Addresses of resources, by what comes before their ids; each ends in a slash."""
    routes = SimpleRouter(use_regex_path=False)
    for prefix, resource in resources.items():
        routes.register(prefix, resource, basename=prefix.rpartition("/")[2].replace("-", "_"))
    return routes
