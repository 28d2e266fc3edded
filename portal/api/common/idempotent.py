"""Creations that a client may repeat.

Under one Idempotency-Key the same body gives the same object again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.clock import database_now
from scheduler.services.idempotency import Creation, once, unkeyed

HEADER, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
LONGEST_KEY, PRINTABLE = 200, "^[ -~]+$"  # what headers carry safely
KEY = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": PRINTABLE},
    OpenApiParameter.HEADER,
    description=f"Any text of at most {LONGEST_KEY} characters. The same key and body give the same object"
    " again; a secret that was shown with it is not shown a second time.",
)

Made = TypeVar("Made", bound=Model)


def create(
    request: ApiRequest,
    *,
    make: Callable[[Creation], Made],
    load: Callable[[str], Made],
    body_digest: str | None = None,
) -> tuple[Made, bool]:
    """Return the object, and whether it was made now or at an earlier request.

    The earlier request has the same key. `make` creates the object in the transaction that it is
    given; `load` finds an object by its id. `body_digest` is needed only where the body is not
    JSON.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return make(unkeyed), True
    if len(key) > LONGEST_KEY or not re.fullmatch(PRINTABLE, key):
        raise ValidationError({HEADER: [f"must be a text of 1 to {LONGEST_KEY} printable ASCII characters"]})
    return once(
        owner=request.user,
        route=f"POST {request.path}",
        key=key,
        body_digest=body_digest or digest_of_body(request.data),
        now=database_now(),
        create=make,
        load=load,
    )


def created(body: Any, *, path: str, made: bool) -> Response:
    """The answer to a creation.

    path: where the object is from now on. made: now; otherwise at an earlier request with the same key.
    """
    replayed = {} if made else {REPLAYED: "true"}
    return Response(body, status=201, headers={"Location": path, **replayed})


def create_with_secret(
    request: ApiRequest, *, make: Callable[[], tuple[Made, str]], load: Callable[[str], Made]
) -> tuple[Made, str | None]:
    """Return the object and its secret.

    The secret is None for a repeated request: secrets are not kept.
    """
    secrets: list[str] = []

    def made_apart() -> Made:
        made, secret = make()
        secrets.append(secret)
        return made

    made, _ = create(request, make=in_one_transaction(made_apart), load=load)
    return made, secrets[0] if secrets else None


def in_one_transaction(make: Callable[[], Made]) -> Callable[[Creation], Made]:
    """Return a `make` that writes the object and its key in one transaction.

    It is for services that know nothing of keys.
    """

    def make_and_note(creation: Creation) -> Made:
        with creation() as note:
            made = make()
            note(made)
        return made

    return make_and_note


def digest_of_body(body: Any) -> str:
    """Return the SHA-256 of the body's meaning.

    Neither spaces nor the order of keys change it.
    """
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
