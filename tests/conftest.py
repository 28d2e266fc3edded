"""Rules for the whole suite.

The environment is set earlier, by tests/harness/environment.py.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.cache import caches

from knowledge.catalogue import portal_catalogue

DATABASE_FIXTURES = {"db", "transactional_db", "live_server"}


def pytest_configure() -> None:
    """Cheap passwords: hashing them well is Django's business and costs 0.2 s each.

    Static files are found when asked for: WhiteNoise would look at all of them for each test client anew.
    """
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.WHITENOISE_AUTOREFRESH = True
    portal_catalogue.FRESH_S = math.inf  # the moment must not decide which request reads entries again


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database-only", action="store_true", help="only tests that touch the database")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a second database only the tests that use it have anything new to say."""
    if not config.getoption("--database-only"):
        return
    using = [item for item in items if uses_database(item) and not item.get_closest_marker("one_database")]
    config.hook.pytest_deselected(items=[item for item in items if item not in using])
    items[:] = using


def uses_database(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("django_db") is not None
    return marked or bool(DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())))


@pytest.fixture(autouse=True)
def _clean_cache() -> Iterator[None]:
    """Rate limits and cached answers do not cross tests."""
    yield
    portal_catalogue.forget_entries()
    for cache in caches.all():
        cache.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    """Turn a skip for a missing tool into a failure with CI=true.

    Data that is not shipped may be absent.
    """
    report = yield
    expected = hasattr(report, "wasxfail") or item.get_closest_marker("shared_data")
    if report.skipped and os.environ.get("CI") == "true" and not expected:
        report.outcome = "failed"
        report.longrepr = f"skipped although CI=true: {report.longrepr}"
    return report
