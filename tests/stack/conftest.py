"""One live stack for all fault tests.

A checker judges it after each of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from scheduler.models import Job
from scheduler.states import TERMINAL
from tests.harness.invariants import assert_all_hold
from tests.harness.stack import PATIENCE_S, SHORT_LEASES, Stack, with_one_node
from tests.stack.jobs import LONG, final_loss


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the stacks that last for a module first.

    So none of them idles beside the one of the session.
    """
    ours = [item for item in items if "tests/stack/" in str(item.path)]
    for item in ours:
        item.add_marker(pytest.mark.stack)
    first = [item for item in ours if "stack" not in getattr(item, "fixturenames", ())]
    items[:] = [*first, *(item for item in items if item not in first)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):  # type: ignore[no-untyped-def]
    """A failure shows what the processes had logged last."""
    report = yield
    if report.failed:
        for stack in {thing for thing in item.funcargs.values() if isinstance(thing, Stack)}:
            for log in sorted((stack.data / "log").glob("*.log")):
                report.sections.append((f"end of {log.name}", log.read_text(errors="replace")[-2000:]))
    return report


@pytest.fixture(scope="session", autouse=True)
def _quiet_client() -> None:
    """Hundreds of lines of polling would hide what matters in a failure."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)


@pytest.fixture(scope="session")
def _rows_are_readable(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Allow reading the stack's own database.

    pytest-django's test database is not used here.
    """
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session")
def stack(_rows_are_readable: None) -> Iterator[Stack]:
    """With a past (tests/stack/past.py); a job may take two nodes."""
    made = Stack(leases={**SHORT_LEASES, "MAX_NODES_PER_JOB": "2"})
    yield from with_one_node(made, past="from tests.stack import past; past.make()")


@pytest.fixture(scope="session")
def undisturbed_loss(stack: Stack) -> float:
    """The final loss of the long job when nothing happens to it."""
    job = stack.client.wait(stack.submit(**LONG), timeout_s=PATIENCE_S)
    assert job["state"] == "succeeded", job["error"]
    return final_loss(job)


@pytest.fixture
def judged(stack: Stack) -> Iterator[Stack]:
    """The stack, with every invariant checked once the test has ended well."""
    for left_over in Job.objects.using(stack.alias).exclude(state__in=TERMINAL):
        stack.client.post(f"jobs/{left_over.id}/cancel/")  # by a test that failed
        stack.client.wait(left_over.id, timeout_s=PATIENCE_S)
    yield stack
    assert_all_hold(stack.alias)
    assert not stack.trainings()


@pytest.fixture
def policy_chosen(judged: Stack) -> Iterator[Any]:
    def choose(name: str, **parameters: Any) -> None:
        judged.admin.patch("policy/", {"name": name, "reason": "test", "parameters": parameters})

    yield choose
    choose("fifo")
