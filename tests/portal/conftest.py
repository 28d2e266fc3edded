"""Clients of the interfaces: one per kind of asker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient

from knowledge.models import PredictorVersion
from knowledge.predictors import predictor_files
from knowledge.predictors.model_registry import promote
from portal.accounts.models import Scope, User
from portal.accounts.services import create_token
from scheduler.models import DatasetFile
from tests.harness import world


class Program(APIClient):
    """A client with a token; `authorization` is the header that carries it."""

    def __init__(self, authorization: str) -> None:
        super().__init__()
        self.authorization = authorization
        self.credentials(HTTP_AUTHORIZATION=authorization)


def token_client(owner: User, scope: Scope = Scope.WRITE, **bounds: Any) -> Program:
    """A program that acts for `owner`; bounds: those of its token."""
    _, plain = create_token(owner=owner, name="test", now=timezone.now(), scope=scope, **bounds)
    return Program(f"Bearer {plain}")


@contextmanager
def rows_of_a_module(blocker: DjangoDbBlocker) -> Iterator[None]:
    """Provide rows that all tests of a module begin with.

    Each test runs in a transaction of its own.
    """
    with blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def person(db: None) -> User:
    return world.user("ada")


@pytest.fixture
def api(person: User) -> Program:
    return token_client(person)


@pytest.fixture
def stranger(db: None) -> Program:
    return token_client(world.user("eve"))


@pytest.fixture
def admin_api(db: None) -> Program:
    return token_client(world.admin(), Scope.ADMIN)


@pytest.fixture
def data_file(person: User) -> DatasetFile:
    return world.data_file(person)


@pytest.fixture
def browser(person: User) -> Client:
    """A signed-in browser."""
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def admin(person: User) -> User:
    """`person`, made an administrator."""
    person.is_staff = True
    person.save()
    return person


@pytest.fixture
def admin_browser(admin: User) -> Client:
    client = Client()
    client.force_login(admin)
    return client


@pytest.fixture
def body(data_file: DatasetFile) -> Callable[..., dict[str, object]]:
    """The two required values of a job, and whatever else is given."""

    def make(**values: object) -> dict[str, object]:
        return {"model": "builtin/tiny-llama", "training_file": data_file.pk, **values}

    return make


@pytest.fixture
def versions(db: None) -> Iterator[list[PredictorVersion]]:
    """Three predictors with files, promoted one after the other.

    The third one is active.
    """
    folder = Path(settings.DATA_DIR, "predictors")
    folder.mkdir(exist_ok=True)
    made = []
    for number in (1, 2, 3):
        path = folder / f"predictor-{number}.skops"
        made.append(
            PredictorVersion.objects.create(
                number=number, path=path.name, sha256=predictor_files.save({}, path), rows=40,
                created_at=timezone.now(), metrics={"throughput_median_ape": 0.07}, reason="not worse",
            )
        )  # fmt: skip
        promote(made[-1], now=timezone.now())
    yield made
    for version in made:
        (folder / version.path).unlink(missing_ok=True)
