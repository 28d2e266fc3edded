"""RFC 8628: oauthlib speaks it, and asks here about clients, scopes and codes.

Clients are public and not registered: whoever has the portal's address may ask, and a person decides.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from oauthlib.common import Request
from oauthlib.oauth2 import BearerToken, RequestValidator, TokenEndpoint
from oauthlib.oauth2.rfc8628.endpoints import DeviceAuthorizationEndpoint
from oauthlib.oauth2.rfc8628.grant_types import DeviceCodeGrant

from portal.accounts import token_text
from portal.accounts.device.grants import INTERVAL_S, LIVES, new_user_code
from portal.accounts.models import DeviceGrant, Scope
from portal.accounts.services import create_token, digest_of
from portal.clock import database_now

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
SLOWER_S = 5  # RFC 8628, 3.5: by how much a program that asks too often has to slow down
EARLY_S = 1.0  # on the way to the portal two questions may come closer to each other
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}\Z", re.ASCII)
USUAL_SCOPE = Scope.SUBMIT


class Program(NamedTuple):
    """A client, by the name that it gives itself."""

    client_id: str


class Validator(RequestValidator):  # type: ignore[misc]  # it has no types
    """What oauthlib asks about clients, scopes and codes."""

    def client_authentication_required(self, request: Request, *_: Any, **__: Any) -> bool:
        return False

    def validate_client_id(self, client_id: str, request: Request, *_: Any, **__: Any) -> bool:
        return bool(NAME.match(client_id))

    def authenticate_client_id(self, client_id: str | None, request: Request, *_: Any, **__: Any) -> bool:
        request.client = Program(client_id or "")
        return self.validate_client_id(request.client.client_id, request)

    def validate_grant_type(self, client_id: str, grant_type: str, *_: Any, **__: Any) -> bool:
        return grant_type == GRANT_TYPE

    def get_default_scopes(self, client_id: str, request: Request, *_: Any, **__: Any) -> list[str]:
        return [USUAL_SCOPE.value]

    def validate_scopes(self, client_id: str, scopes: list[str], *_: Any, **__: Any) -> bool:
        return set(scopes) <= {scope.value for scope in Scope}

    def validate_device_code(
        self, client_id: str, code: str, request: Request, *_: Any, **__: Any
    ) -> str | None:
        """Say how far a program's question is; it stays held until the transaction ends.

        So a token is handed out once. None: there is no such question of this program, or it has its token.
        """
        now = database_now()
        here = DeviceGrant.objects.select_for_update(of=("self",)).select_related("owner", "team")
        grant = here.filter(digest=digest_of(code), program=client_id).first()
        if grant is None or grant.collected_at is not None:
            return None
        if grant.denied_at is not None:
            return str(DeviceCodeGrant.DEVICE_CODE_DENIED)
        if now >= grant.expires_at:
            return str(DeviceCodeGrant.DEVICE_CODE_EXPIRED)
        if grant.confirmed_at is None:
            return str(_paced(grant, now))
        if grant.owner is None or not grant.owner.is_active:
            return str(DeviceCodeGrant.DEVICE_CODE_DENIED)
        request.user, request.scopes, request.device_grant = grant.owner, [grant.scope], grant
        return str(DeviceCodeGrant.DEVICE_CODE_AUTHORIZED)

    def save_bearer_token(self, token: dict[str, Any], request: Request, *_: Any, **__: Any) -> None:
        """Store the token as one of its person's API tokens."""
        grant, now = request.device_grant, database_now()
        create_token(
            owner=grant.owner,
            name=grant.name,
            now=now,
            scope=Scope(grant.scope),
            expires_at=grant.token_expires_at,
            team=grant.team,
            text=token["access_token"],
        )
        DeviceGrant.objects.filter(pk=grant.pk).update(collected_at=now)
        if grant.token_expires_at is None:  # RFC 6749, 5.1: left out where nothing ends
            del token["expires_in"]


def _paced(grant: DeviceGrant, now: datetime) -> str:
    """Whether the program asks as seldom as it was told; else it has to slow down."""
    since_s = (now - grant.polled_at).total_seconds() if grant.polled_at else float("inf")
    soon = since_s < grant.interval_s - EARLY_S
    interval_s = grant.interval_s + SLOWER_S * soon
    DeviceGrant.objects.filter(pk=grant.pk).update(polled_at=now, interval_s=interval_s)
    return str(DeviceCodeGrant.DEVICE_CODE_SLOW_DOWN if soon else DeviceCodeGrant.DEVICE_CODE_PENDING)


def _seconds_left(request: Request) -> int:
    end: datetime | None = request.device_grant.token_expires_at
    return max(1, int((end - database_now()) / timedelta(seconds=1))) if end else 0


validator = Validator()
_grant = DeviceCodeGrant(validator, refresh_token=False)


def device_endpoint(verification_uri: str) -> DeviceAuthorizationEndpoint:
    """Where programs ask; verification_uri: the page where a person confirms."""
    return DeviceAuthorizationEndpoint(
        validator,
        verification_uri=verification_uri,
        verification_uri_complete=f"{verification_uri}?code={{user_code}}",
        expires_in=int(LIVES.total_seconds()),
        interval=INTERVAL_S,
        user_code_generator=new_user_code,
    )


token_endpoint = TokenEndpoint(
    default_grant_type=GRANT_TYPE,
    default_token_type=BearerToken(
        validator, token_generator=lambda _: token_text.new_text(), expires_in=_seconds_left
    ),
    grant_types={GRANT_TYPE: _grant},
)
