"""The release that answers, and what it can do: for clients, before they sign in."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.urls import Resolver404, resolve
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.common.views import StrictView
from trainer import __version__

API = 1  # what /api/ means; one that it breaks with would be /api/2/
MINIMUM_CLIENT = "0.1"  # releases of `foretune` before it would not understand the answers
# What a client may need, by names that stay, and the address that is there with it.
FEATURES = {
    "device_sign_in": "/oauth/device-authorization/",
    "service_accounts": "/api/service-accounts/",
    "token_rotation": "/api/tokens/1/rotate/",
    "uploads": "/api/uploads/",
    "v1": "/v1/models",
}


class VersionOut(serializers.Serializer[Any]):
    version = serializers.CharField(help_text="The release of the portal, as in `Foretune-Version`.")
    api = serializers.IntegerField(help_text="The version of the API under /api/.")
    minimum_client = serializers.CharField(help_text="The first release of the client `foretune` that fits.")
    features = serializers.ListField(
        child=serializers.CharField(), help_text="Names of what it can do; more come with time."
    )


class VersionApi(StrictView):
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(operation_id="version_retrieve", summary="Version", auth=[], responses=VersionOut)
    def get(self, request: Request) -> Response:
        """The release, the version of the API, and what it can do; for everybody."""
        told = {"version": __version__, "api": API, "minimum_client": MINIMUM_CLIENT, "features": features()}
        return Response(told)


@cache
def features() -> list[str]:
    """The names of what this portal can do."""
    return [name for name, address in FEATURES.items() if _is_there(address)]


def _is_there(address: str) -> bool:
    """Has the address a view? A last route answers what is unknown."""
    try:
        return not resolve(address).route.endswith("^.*$")
    except Resolver404:
        return False
