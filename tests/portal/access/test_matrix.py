"""Each address, method and role against a reviewed table of answers.

No answer holds a word of another team.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.harness.sampling import mostly_on_demand
from tests.portal.access import table
from tests.portal.access.addresses import all_addresses
from tests.portal.access.asking import ROLES, AccessMatrix
from tests.portal.access.table import Row

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
ROWS = table.read()
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def test_every_address_and_method_has_a_reviewed_row(matrix: AccessMatrix) -> None:
    reviewed = {(row.method, row.address.split("?")[0]) for row in ROWS}
    known, missing = all_addresses(), []
    for address, method in product(known, METHODS):
        if (method, address) in reviewed or ("ANY", address) in reviewed:
            continue
        insider = "node" if address.startswith("/agent/") else "admin"
        if matrix.ask(insider, method, address).status != "405":
            missing.append(as_it_is(matrix, method, address))
    assert not missing, f"review and add to {table.FILE.name}, with a body:\n" + "\n".join(missing)
    gone = [f"{method} {address}" for method, address in reviewed if address not in known]
    assert not gone, f"answered no longer, remove from {table.FILE.name}: {gone}"


def as_it_is(matrix: AccessMatrix, method: str, address: str, body: str = "") -> str:
    expected = {role: matrix.ask(role, method, address, body).status for role in ROLES}
    return Row(method, address, expected, body).line


@pytest.mark.parametrize("role", mostly_on_demand(ROLES, {*ROLES} - {"gone", "admin_write"}))
def test_every_role_gets_the_reviewed_answer_and_reads_nothing_of_others(
    matrix: AccessMatrix, role: str
) -> None:
    wrong = []
    for row in ROWS:
        if not matrix.is_signed_in(role, row.address) and role != "anonymous":
            assert row.expected[role] == row.expected["anonymous"], row
            continue
        for token in ("gone", "revoked") if role == "gone" else (role,):
            answer = matrix.ask(role, row.method, row.address, row.body, token=token)
            what = f"{row.method} {row.address}"
            if answer.status != row.expected[role]:
                wrong.append(f"{what}: {answer.status} instead of {row.expected[role]}")
            wrong += [f"{what}: shows {word}" for word in matrix.leaks(role, answer)]
    assert not wrong, f"{role}:\n" + "\n".join(wrong)


def test_the_scan_knows_what_it_looks_for(matrix: AccessMatrix) -> None:
    shown = {role: matrix.ask(role, "GET", "/api/jobs/").text for role in ("member", "stranger", "admin")}
    assert matrix.first.job.pk in shown["member"]
    assert "lynx-running" in shown["member"]
    assert "otter-running" in shown["stranger"]
    assert all(name in shown["admin"] for name in ("lynx-waiting", "otter-ended"))


@pytest.mark.parametrize("role", ["anonymous", "gone", "member", "admin"])
def test_djangos_own_tables_are_for_administrators(matrix: AccessMatrix, role: str) -> None:
    """There are many of these addresses: one rule for all."""
    for address in matrix.tables():
        answer = matrix.ask(role, "GET", address)
        expected = ("200", "302") if role == "admin" else ("login",)
        assert answer.status in expected, f"{address}: {answer.status}"
        assert not matrix.leaks(role, answer), address
