"""The portal's caches.

Pages are cached per process; counts that all processes share go through Redis.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from redis.backoff import NoBackoff
from redis.retry import Retry

_LOCAL = "django.core.cache.backends.locmem.LocMemCache"
ANSWER_WITHIN_S = 0.3


class JsonSerializer:
    """Django's default would unpickle whatever someone wrote into Redis."""

    def dumps(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def loads(self, stored: bytes) -> Any:
        return json.loads(stored)


def caches(broker_url: str) -> dict[str, dict[str, Any]]:
    """Return the caches: `default` per process, `counters` shared by all.

    Counters are shared where the broker is a Redis.
    """
    # One process counts alone here. Names that somebody makes up must not push the others out.
    counters: dict[str, Any] = {
        "BACKEND": _LOCAL,
        "LOCATION": "counters",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
    if address := redis_address(broker_url):
        counters = {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": address,
            "KEY_PREFIX": "foretune",
            "OPTIONS": {
                "serializer": JsonSerializer(),
                "socket_timeout": ANSWER_WITHIN_S,
                "socket_connect_timeout": ANSWER_WITHIN_S,
                "retry": Retry(NoBackoff(), 0),
            },
        }
    return {"default": {"BACKEND": _LOCAL}, "counters": counters}


def redis_address(broker_url: str) -> str:
    """Return Celery's address of a Redis as the Redis client writes it.

    The text is empty for any other broker.
    """
    parts = urlsplit(broker_url)
    if parts.scheme in ("redis", "rediss"):
        return broker_url
    if parts.scheme == "redis+socket":
        number = parse_qs(parts.query).get("virtual_host", ["0"])[0]
        return f"unix://{parts.path}?{urlencode({'db': number})}"
    return ""
