"""Rules for the whole suite.

The environment is set earlier, by tests/harness/environment.py.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import hypothesis
import pytest
from django.conf import settings
from django.core.cache import caches
from django.db.models.signals import post_migrate

from knowledge.catalogue import portal_catalogue
from tests.harness.databases import empty_by_deletion, mark_databases
from tests.harness.environment import FREE
from tests.harness.event_schemas import compare_all
from tests.harness.servers import NotInstalled, Postgres


def pytest_configure() -> None:
    """Cheap passwords: hashing them well is Django's business and costs 0.2 s each.

    Static files are found when asked for: WhiteNoise would look at all of them for each test client anew.
    """
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.WHITENOISE_AUTOREFRESH = True
    # After each test that commits Django would write its permissions anew, which nothing here reads.
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    empty_by_deletion()
    compare_all()
    # A busy machine is no fault of a test.
    hypothesis.settings.register_profile(
        "untimed",
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize=not FREE,
        database=None,
    )
    hypothesis.settings.load_profile("untimed")
    portal_catalogue.FRESH_S = math.inf  # the moment must not decide which request reads entries again


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by these marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_databases(items)


@pytest.fixture(autouse=True)
def _clean_cache() -> Iterator[None]:
    """Rate limits and cached answers do not cross tests."""
    yield
    portal_catalogue.forget_entries()
    for cache in caches.all():
        cache.clear()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A server of the module's own."""
    try:
        server = Postgres()
    except NotInstalled as missing:
        pytest.skip(f"no {missing} here")
    yield server
    server.remove()


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
