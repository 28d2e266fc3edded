"""Two teams and everyone who may knock, made once for the whole matrix."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from scheduler.loop.tick import tick
from tests.portal.access.asking import AccessMatrix
from tests.portal.access.sides import SECRETS, askers, let_wait, places, side
from tests.portal.conftest import rows_of_a_module


@pytest.fixture(scope="package")
def matrix(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AccessMatrix]:
    roots = tmp_path_factory.mktemp("roots")
    with pytest.MonkeyPatch.context() as patch, rows_of_a_module(django_db_blocker):
        patch.setenv("HF_TOKEN", SECRETS["HF_TOKEN"])
        patch.setenv("DATABASE_URL", SECRETS["DATABASE_URL"])
        patch.setitem(connection.settings_dict, "PASSWORD", SECRETS["database"])
        with override_settings(SECRET_KEY=SECRETS["SECRET_KEY"], MODEL_ROOTS=[roots]):
            first, second = side("lynx", roots), side("otter", roots)
            for one in (first, second):
                let_wait(one, roots)
            tick()  # says of the waiting jobs why they wait
            everyone = askers(first, second)
            yield AccessMatrix(first, second, everyone, places(first, everyone.admin))
